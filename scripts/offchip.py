#!/usr/bin/env python3
"""Computes the off-chip traffic of orders for several capacities, as ``serenity offchip`` does.

python scripts/offchip.py MODEL... --capacities 32K:1M:x2 --orders given,serenity,traffic --json
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tvm_serenity.cli import run

if __name__ == "__main__":
    sys.argv[1:1] = ["offchip"]
    run()
