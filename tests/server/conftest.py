"""One server, shared by the tests that only send requests."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from replica import Replica

NAMES = (
    "orders=standard node=1 compat=leaf,tinyid",
    "items=twitter datacenter=3 worker=4",
    "invoice=segment store=memory step=100 compat=leaf,tinyid",
    "odd=segment store=memory increment=2 offset=1 step=100 compat=tinyid",
    "ring=buffered standard node=2 size=4096",
    # 16 IDs a second. A later request in that second waits or is refused.
    "slow=layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=3 exhausted=wait:60s",
    "full=layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=4 exhausted=error",
)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder, stores = tmp_path_factory.mktemp("server"), [tmp_path_factory.mktemp("store") for _ in range(2)]
    photos = f"photos=tickets store='file:{stores[0]} file:{stores[1]}'"
    with Replica(folder, *NAMES, photos, "--threads=1", "--max-wait-ms=30000", "--max-connections=1000") as replica:
        yield replica
        assert replica.end() == 0
        # The tests provoke refusals.
        assert {event["level"] for event in replica.events() if event["event"] != "access.refused"} == {"info"}
