"""The command line: `frazil`, and `python -m frazil`."""

import sys

from ._frazil import cli


def main() -> int:
    """Runs the command that the program's arguments name, and returns its exit status."""
    return cli(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
