"""The slowest tests of the last run, and why each is slow: what a test costs in CPU seconds.

    make test && python benchmarks/slow_tests.py [--count 30] [--write]

``--write`` keeps what each file cost: the suite starts the dearest files first. Ends with status 1
where one of the tests shown has no reason in ``tests/slow_tests.toml``.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests import costs


def by_file(found: list[costs.Cost]) -> dict[str, float]:
    """Return the CPU seconds of each file, rounded."""
    sums: defaultdict[str, float] = defaultdict(float)
    for cost in found:
        sums[cost.test.partition("::")[0]] += cost.cpu_s
    return {file: round(seconds, 1) for file, seconds in sorted(sums.items())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30, help="how many tests are shown")
    parser.add_argument("--write", action="store_true", help="keep the costs of the files")
    asked = parser.parse_args()
    found, known = costs.measured(), costs.reasons()
    if not found:
        print(f"nothing is measured in {costs.MEASURED}: run make test first", file=sys.stderr)
        return 2
    total, missing = sum(cost.cpu_s for cost in found), 0
    print(f"{len(found):,} tests, {total / 60:.1f} CPU minutes\n")
    print("| CPU s | of children | test | why |\n|---|---|---|---|")
    for cost in found[: asked.count]:
        why = costs.reason(cost.test, known)
        missing += why is None
        test = cost.test.removeprefix("tests/")
        print(f"| {cost.cpu_s:.1f} | {cost.children_s:.1f} | `{test}` | {why or '**no reason**'} |")
    if asked.write:
        costs.FILES.write_text(json.dumps(by_file(found), indent=1) + "\n", encoding="utf-8")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
