"""One fixed number in every worker of a server: one worker issues from it, and all others get NODE_IN_USE."""

import contextlib
import datetime
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import frazil
import pytest
from test_frameworks import ask, running

WORKERS = 4
# Sequences begin at 0, so two workers that mint in the same tick repeat IDs.
APP = """
import json, os, time, frazil
ids = frazil.Snowflake("standard", node=1, start="zero", shared={shared})

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({{"type": "lifespan.startup.complete"}})
        return await send({{"type": "lifespan.shutdown.complete"}})
    try:
        said, status = await ids.abatch(20_000), 200
    except frazil.errors.NodeInUseError as error:
        said, status = str(error), 500
    said = json.dumps([os.getpid(), said]).encode()
    await send({{"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]}})
    await send({{"type": "http.response.body", "body": said}})
"""
SERVERS = {
    "gunicorn": ["gunicorn", "--worker-class=uvicorn_worker.UvicornWorker", "--bind=fd://{fd}", f"--workers={WORKERS}"],
    "uvicorn": ["uvicorn", "--fd={fd}", f"--workers={WORKERS}"],
}


@pytest.fixture(autouse=True)
def scope(tmp_path, monkeypatch):
    """Gives each test its own scope: its processes see each other's numbers, and no others."""
    monkeypatch.setenv("FRAZIL_GUARD_SCOPE", str(tmp_path))


def answers(name, shared, folder):
    """Asks a server until each worker has answered. Returns the IDs and the refusals, with their process IDs."""
    (folder / "shop.py").write_text(APP.format(shared=shared))
    issued, refused = [], {}
    with running([sys.executable, "-m", *SERVERS[name], "--log-level=warning", "shop:app"], folder) as port:
        until = time.monotonic() + 120
        while len({pid for pid, _ in issued} | set(refused)) < WORKERS and time.monotonic() < until:
            with ThreadPoolExecutor(4 * WORKERS) as threads:
                for status, (pid, said) in threads.map(lambda _: ask(port), range(4 * WORKERS)):
                    if status == 200:
                        issued.append((pid, said))
                    else:
                        refused[pid] = said
    return issued, refused


@pytest.mark.parametrize("name", SERVERS)
def test_one_worker_of_a_server_issues(name, tmp_path):
    issued, refused = answers(name, False, tmp_path)
    [holder] = {pid for pid, _ in issued}
    assert len(refused) == WORKERS - 1
    assert all(f"node number 1 is in use on this machine by process {holder} (" in said for said in refused.values()), refused
    minted = [id for _, ids in issued for id in ids]
    assert len(set(minted)) == len(minted) == 20_000 * len(issued)


@pytest.mark.parametrize("name", SERVERS)
def test_shared_workers_repeat(name, tmp_path):
    """The control: the duplicates that the guard prevents."""
    issued, refused = answers(name, True, tmp_path)
    assert not refused and len({pid for pid, _ in issued}) == WORKERS
    minted = [id for _, ids in issued for id in ids]
    assert len(set(minted)) < len(minted)


@contextlib.contextmanager
def holder(spec, said="print(ids.next(), flush=True); input()"):
    """Runs a process that issues from a number and holds it until the block ends."""
    program = f"import frazil; ids = frazil.Snowflake({spec!r}); {said}"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert int(process.stdout.readline()) > 0
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_command_beside_a_server_may_open_but_not_issue():
    program = "import frazil; ids = frazil.Snowflake('standard node=901'); print(ids.node)"
    with holder("standard node=901") as server:
        assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "901\n"
        with (
            frazil.Snowflake("standard", node=901) as ids,
            pytest.raises(frazil.errors.NodeInUseError, match=f"process {server.pid} .*python"),
        ):
            ids.next(timeout=0.1)
    # Like a restarted server: the open waits for the process that is still ending.
    with frazil.Snowflake("standard", node=901) as ids:
        assert ids.next() > 0


def test_options_of_the_guard():
    with holder("standard node=902"):
        for options in ({"shared": True}, {"namespace": "shop"}, {"detached": True}):
            with frazil.Snowflake("standard", node=902, **options) as ids:
                assert ids.next() > 0
        # All handles of a process on one number must have the same options.
        with pytest.raises(frazil.errors.ConflictError, match="shared=true"):
            frazil.Snowflake("standard", node=902)


def test_a_manual_clock_is_guarded_and_warned_of(caplog):
    line = "game server=903 clock=manual"
    said = "import datetime; ids.set_time(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)); print(ids.next(), flush=True); input()"
    with holder(f"{line} after=0", said) as server, frazil.Snowflake(line) as ids:
        ids.set_time(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
        with pytest.raises(frazil.errors.NodeInUseError, match=f"process {server.pid} .*start this process again with after="):
            ids.next()
    # Events are logged by a thread.
    until = time.monotonic() + 30
    while not (events := [record for record in caplog.records if record.name == "frazil"]) and time.monotonic() < until:
        time.sleep(0.01)
    [event] = events
    assert event.event == "node.unguarded"
    assert event.levelname == "WARNING" and "open with after= the highest saved ID" in event.getMessage()
    assert event.fields["reason"] == "clock=manual without after="
