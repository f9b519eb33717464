"""Replicas and a balancer while everything around them breaks. No ID occurs twice, and no client notices a rolling restart.

FRAZIL_SHOW_IDS sets the minimum of IDs (500,000). The faults are repeated until they are minted.
"""

import os

import servers
from show import Show

IDS = int(os.environ.get("FRAZIL_SHOW_IDS", "500000"))


def test_the_show(tmp_path):
    # The test has its own store, because it kills the store.
    with servers.start("postgresql") as store, Show(store, tmp_path) as show:
        rounds = 0
        while rounds == 0 or show.total() < IDS:
            show.round(first=rounds)
            rounds += 1
        show.end()
        print("\n".join(show.report()))
        assert show.rolling["failed"] == 0 and show.rolling["requests"] > 0, show.rolling
        assert all(twice == 0 for _, twice in show.duplicates().values())
        assert show.nodes() == {0, 1, 2, 3}
        assert show.total() >= IDS
