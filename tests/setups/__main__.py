"""Mints through poolers, balancers and clusters, and looks for duplicates: python tests/setups [NAME...] [--seconds=60].

Each set-up starts its own servers from Debian's packages. docs/stores.md has the last results. Four processes mint, and write down every ID
at once. They close and reopen, release their numbers, or are killed with kill -9. Clusters fail over half way.
"""

import argparse
import contextlib
import pathlib
import sys

# Python puts the folder itself on the path, but the packages are in its parent.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import servers
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
        with contextlib.ExitStack() as stack:
            try:
                url, fail_over = stack.enter_context(SETUPS[name]())
            except servers.Missing as missing:
                print(f"{name}: left out: {missing}", flush=True)
                good &= not asked.names
                continue
            minted = mint(f"standard store={url} namespace=setup window=6s renew=1s", asked.seconds, fail_over)
        print(f"{name}: {minted}", flush=True)
        good &= minted.ids > 0 and minted.duplicates == 0
    sys.exit(not good)


main()
