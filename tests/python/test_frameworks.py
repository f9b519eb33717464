"""Generators in web servers and task queues, as they run in production: their workers' first and last calls."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_lease import slots

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
        except frazil.WouldBlockError:
            # A child's first call waits for up to 1 s, which a busy machine may take. Whoever is refused sooner is refused for nothing.
            if time.monotonic() - begun < 0.9:
                raise
            first = await ids.next_async()
        said, status = [first] + [ids.next() for _ in range(9)] + await ids.batch_async(40), 200
    except frazil.FrazilError as error:
        said, status = repr(error), 500
    said = json.dumps([os.getpid(), turn, ids.node, said]).encode()
    await send({{"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]}})
    await send({{"type": "http.response.body", "body": said}})
"""
# Either of them gives back when a server has answered its last request.
ENDS = [{"before": "", "shutdown": "await ids.aclose()"}, {"before": "frazil.close_on_sigterm()", "shutdown": ""}]
FIRSTS = 200
WORKERS = 4
GUNICORN = ["gunicorn", "--worker-class=uvicorn_worker.UvicornWorker", "--bind=fd://{fd}"]
FEW = f"--workers={WORKERS}"
SERVERS = {
    "gunicorn-lifespan": ([*GUNICORN, FEW], ENDS[0]),
    "gunicorn-sigterm": ([*GUNICORN, FEW], ENDS[1]),
    "uvicorn-lifespan": (["uvicorn", "--fd={fd}", FEW], ENDS[0]),
    "uvicorn-sigterm": (["uvicorn", "--fd={fd}", FEW], ENDS[1]),
}
# A worker ends after its first request, and another is forked, which begins sooner if it need not import uvicorn's parts itself.
PARTS = "import uvicorn.lifespan.on, uvicorn.protocols.http.auto, uvicorn.protocols.websockets.auto"
PRELOADED = ([*GUNICORN, "--preload", "--workers=8", "--max-requests=1"], {**ENDS[0], "before": PARTS})


@contextlib.contextmanager
def serving(server, folder):
    """The port of a server, which is handed over to it."""
    command, end = server
    (folder / "shop.py").write_text(APP.format(store=f"file:{folder}", **end))
    environment = {name: value for name, value in os.environ.items() if name != "FRAZIL"}
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        port, fd = listening.getsockname()[1], listening.fileno()
        command = [sys.executable, "-m", *(part.format(fd=fd) for part in command), "--log-level=warning", "shop:app"]
        server = subprocess.Popen(command, cwd=folder, env=environment, pass_fds=[fd])
    try:
        yield port
    finally:
        server.terminate()
        server.wait(60)


def ask(port):
    """The answer to a request, and its status."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def at_once(count, work):
    """Does something in so many threads, and waits for all."""
    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(work) for _ in range(count)]:
            done.result()


def check(answers, folder):
    """Every request was answered, no ID came twice, and the server that was told to end gave everything back."""
    refused = [answer for status, answer in answers if status != 200]
    assert not refused, f"{len(refused)} of {len(answers)}: {refused[0]}"
    minted = [id for _, (_, _, _, ids) in answers for id in ids]
    assert len(set(minted)) == len(minted) == 50 * len(answers)
    assert set(slots(folder, "web").values()) == {"free"}


@pytest.mark.parametrize("name", SERVERS)
def test_the_first_requests_of_a_server_are_answered(name, tmp_path):
    # Counted are requests that were there before any worker was, which has leased its number when it begins to answer.
    answers = []
    with serving(SERVERS[name], tmp_path) as port:
        at_once(FIRSTS, lambda: answers.append(ask(port)))
        until = time.monotonic() + 120
        while len({pid for _, (pid, *_) in answers}) < WORKERS and time.monotonic() < until:
            at_once(20, lambda: answers.append(ask(port)))
    check(answers, tmp_path)
    workers = {pid: node for _, (pid, _, node, _) in answers}
    assert len(set(workers.values())) == len(workers) == WORKERS


def test_the_first_request_of_each_forked_worker_is_answered(tmp_path):
    # Counted are first calls after a fork: of each worker's generator, which the server opened before it forked, on the thread of
    # the worker's running loop.
    answers = []

    def firsts():
        return sum(turn == 1 for _, (_, turn, _, _) in answers)

    def ask_until_all():
        until = time.monotonic() + 240
        while firsts() < FIRSTS and time.monotonic() < until:
            # A worker that ends closes connections which it has taken and not read from.
            with contextlib.suppress(ConnectionError):
                answers.append(ask(port))

    with serving(PRELOADED, tmp_path) as port:
        at_once(16, ask_until_all)
    check(answers, tmp_path)
    assert firsts() >= FIRSTS
