"""``python -m tvm_serenity.validation FILE``: run a reproducer again.

Exit status: 0 the kernel computes what it should, 1 it does not, 2 no reproducer.
"""

import sys
from pathlib import Path

from tvm_serenity.errors import SerenityError
from tvm_serenity.validation.replay import replay


def main() -> int:
    """Replay the file that is named, print what is found, and return the exit status."""
    if len(sys.argv) != 2:
        print("usage: python -m tvm_serenity.validation FILE.npz", file=sys.stderr)
        return 2
    try:
        print(replay(Path(sys.argv[1])))
    except SerenityError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
