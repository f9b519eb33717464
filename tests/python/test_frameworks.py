"""Generators in web servers and task queues as in production: the first and the last calls of their workers."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_lease import run, slots

APP = """
import json, os, time, frazil
ids = frazil.Snowflake("standard", store={store!r}, namespace="web", timeout=30)
ids.next()
requests = 0
{before}

async def app(scope, receive, send):
    global requests
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({{"type": "lifespan.startup.complete"}})
        {shutdown}
        return await send({{"type": "lifespan.shutdown.complete"}})
    requests += 1
    turn = requests
    begun = time.monotonic()
    try:
        try:
            first = ids.next()
        except frazil.errors.WouldBlockError:
            # A child's first call waits for up to 1 s, which a busy machine may take. An earlier refusal is an error.
            if time.monotonic() - begun < 0.9:
                raise
            first = await ids.anext()
        said, status = [first] + [ids.next() for _ in range(9)] + await ids.abatch(40), 200
    except frazil.FrazilError as error:
        said, status = repr(error), 500
    said = json.dumps([os.getpid(), turn, ids.node, said]).encode()
    await send({{"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]}})
    await send({{"type": "http.response.body", "body": said}})
"""
# The two ways to release the number after a server's last answer.
ENDS = [{"before": "", "shutdown": "await ids.aclose()"}, {"before": "frazil.close_on_sigterm()", "shutdown": ""}]
# When uWSGI forks, which it does without os.fork, this handler holds its lock, and has the GIL or waits for it.
WSGI = """
import json, logging, os, time, frazil

class Slow(logging.Handler):
    def emit(self, record):
        until = time.monotonic() + 1
        while time.monotonic() < until:
            time.sleep(0.001)

logging.getLogger("frazil").addHandler(Slow())
logging.getLogger("frazil").setLevel(logging.INFO)
requests = 0

def app(environ, respond):
    global requests
    requests += 1
    # Longer than it takes to accept a request, so that no worker answers two of those that come at once.
    time.sleep(0.1)
    minted = ids.batch(50)
    respond("200 OK", [("Connection", "close")])
    return [json.dumps([os.getpid(), requests, ids.node, minted]).encode()]

ids = frazil.Snowflake("standard", store={store!r}, namespace="web", timeout=30)
{after}
"""
# uWSGI runs no exit handlers in a worker that it ends during a request, so SIGTERM must end workers gracefully.
GRACEFULLY = "--hook-master-start=unix_signal:15 gracefully_kill_them_all"
UWSGI = {"default": [], "threads": ["--enable-threads"], "lazy": ["--lazy-apps"]}
FIRSTS = 200
WORKERS = 4
GUNICORN = ["gunicorn", "--worker-class=uvicorn_worker.UvicornWorker", "--bind=fd://{fd}"]
FEW = f"--workers={WORKERS}"
# hypercorn sends SIGTERM to the other workers once the first has ended.
BOTH = {"before": ENDS[1]["before"], "shutdown": ENDS[0]["shutdown"]}
HYPERCORN = ["hypercorn", "--bind=fd://{fd}", FEW]
SERVERS = {
    "hypercorn-asyncio": (HYPERCORN, BOTH),
    "hypercorn-trio": ([*HYPERCORN, "--worker-class=trio"], BOTH),
    "gunicorn-lifespan": ([*GUNICORN, FEW], ENDS[0]),
    "gunicorn-sigterm": ([*GUNICORN, FEW], ENDS[1]),
    "uvicorn-lifespan": (["uvicorn", "--fd={fd}", FEW], ENDS[0]),
    "uvicorn-sigterm": (["uvicorn", "--fd={fd}", FEW], ENDS[1]),
}
# Each worker ends after its first request. The next one starts sooner if the parent has imported uvicorn's parts.
PARTS = "import uvicorn.lifespan.on, uvicorn.protocols.http.auto, uvicorn.protocols.websockets.auto"
PRELOADED = ([*GUNICORN, "--preload", "--workers=8", "--max-requests=1"], {**ENDS[0], "before": PARTS})


@contextlib.contextmanager
def serving(server, folder):
    """Runs a server on a listening socket that it inherits, and yields its port."""
    command, end = server
    (folder / "shop.py").write_text(APP.format(store=f"file:{folder}", **end))
    with running([sys.executable, "-m", *command, "--log-level=warning", "shop:app"], folder) as port:
        yield port


@contextlib.contextmanager
def running(command, folder):
    """Runs a server, yields its port, and ends it with SIGTERM."""
    environment = {name: value for name, value in os.environ.items() if name != "FRAZIL"}
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        port, fd = listening.getsockname()[1], listening.fileno()
        server = subprocess.Popen([str(part).format(fd=fd) for part in command], cwd=folder, env=environment, pass_fds=[fd])
    try:
        yield port
    finally:
        server.terminate()
        try:
            server.wait(60)
        finally:
            server.kill()


def uwsgi(options, folder):
    """Runs uWSGI, yields its port, and ends it with SIGTERM."""
    # The master runs no Python code at its end, so it releases its number before it forks the workers.
    after = "" if "--lazy-apps" in options else "ids.release_node()"
    (folder / "shop.py").write_text(WSGI.format(store=f"file:{folder}", after=after))
    command = ["uwsgi", "--http-socket=fd://{fd}", "--master", "--module=shop:app", "--need-app", GRACEFULLY, "--no-orphans"]
    return running([Path(sys.executable).parent / command[0], *command[1:], FEW.replace("workers", "processes"), *options], folder)


def ask(port):
    """Returns the status of an answer, and its content."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def at_once(count, work):
    """Calls `work` in `count` threads, and waits for all."""
    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(work) for _ in range(count)]:
            done.result()


def check(answers, folder):
    """Checks that every request was answered, that no ID repeats, and that the server has released every number after SIGTERM."""
    refused = [answer for status, answer in answers if status != 200]
    assert not refused, f"{len(refused)} of {len(answers)}: {refused[0]}"
    minted = [id for _, (_, _, _, ids) in answers for id in ids]
    assert len(set(minted)) == len(minted) == 50 * len(answers)
    assert set(slots(folder, "web").values()) == {"free"}


@pytest.mark.parametrize("name", SERVERS)
def test_the_first_requests_of_a_server_are_answered(name, tmp_path):
    # The first requests arrive before any worker runs. A worker leases its number before it begins to answer.
    answers = []
    with serving(SERVERS[name], tmp_path) as port:
        at_once(FIRSTS, lambda: answers.append(ask(port)))
        ask_until_all_answer(port, 20, answers)
    check_workers(answers, tmp_path)


def ask_until_all_answer(port, count, answers):
    """Sends `count` requests at once, until every worker has answered."""
    until = time.monotonic() + 120
    while len({pid for _, (pid, *_) in answers}) < WORKERS and time.monotonic() < until:
        at_once(count, lambda: answers.append(ask(port)))


def check_workers(answers, folder):
    """Checks the answers, and that every worker has answered with its own number."""
    check(answers, folder)
    workers = {pid: node for _, (pid, _, node, _) in answers}
    assert len(set(workers.values())) == len(workers) == WORKERS


@pytest.mark.parametrize("mode", UWSGI)
def test_uwsgi(mode, tmp_path):
    answers = []
    with uwsgi(UWSGI[mode], tmp_path) as port:
        ask_until_all_answer(port, WORKERS, answers)
    check_workers(answers, tmp_path)


def test_the_first_request_of_each_forked_worker_is_answered(tmp_path):
    # The server opens the generator before it forks. The test counts each worker's first call, on the thread of its running
    # loop.
    answers = []

    def firsts():
        return sum(turn == 1 for _, (_, turn, _, _) in answers)

    def ask_until_all():
        until = time.monotonic() + 240
        while firsts() < FIRSTS and time.monotonic() < until:
            # A worker that ends closes connections that it has accepted but not read.
            with contextlib.suppress(ConnectionError):
                answers.append(ask(port))

    with serving(PRELOADED, tmp_path) as port:
        at_once(16, ask_until_all)
    check(answers, tmp_path)
    assert firsts() >= FIRSTS


def test_a_snapshot_of_aws_lambda_is_noticed(tmp_path):
    """The runtime calls registered functions after it has restored a snapshot. Importing frazil registers `restored`."""
    code = f"""
import frazil, snapshot_restore_py
from frazil.uuid import uuid7

def outcome(call):
    try:
        return bool(call())
    except frazil.FrazilError as error:
        return error.name

fixed = frazil.Snowflake("standard node=7 detached=true")
local = frazil.Snowflake("standard", store="file:{tmp_path}")
calls = [fixed.next, local.next, uuid7]
before = [outcome(call) for call in calls]
for function, positional, named in snapshot_restore_py.get_after_restore():
    function(*positional, **named)
print(before, [outcome(call) for call in calls])
"""
    assert run(code) == "[True, True, True] ['COPIED', 'COPIED', True]\n"
