"""Mints through poolers, balancers and clusters, and looks for duplicates: python tests/setups [NAME...] [--seconds=60].

Each set-up has servers of its own, from Debian's packages; docs/stores.md has the last results. Four processes mint. They close and open
again, release their numbers, or are killed with kill -9, and write down every ID first. Clusters fail over half way.
"""

import argparse
import pathlib
import sys

# Run as a folder, the folder itself is on the path; the packages are one above.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from servers import process

from setups.mint import mint
from setups.setups import SETUPS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *SETUPS], help=", ".join(SETUPS))
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args()
    process.exit_on_signals()
    good = True
    for name in asked.names or SETUPS:
        with SETUPS[name]() as (url, fail_over):
            told = mint(f"standard store={url} namespace=setup window=6s renew=1s", asked.seconds, fail_over)
        print(f"{name}: {told}", flush=True)
        good &= told.ids > 0 and told.duplicates == 0
    sys.exit(not good)


main()
