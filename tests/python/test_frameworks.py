"""Generators in web servers and task queues, as they run in earnest: their workers' first and last calls."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from test_lease import in_time, slots

APP = """
import json, os, frazil
ids = frazil.Snowflake("standard", store={store!r}, namespace="web", timeout=30)
ids.next()
{before}

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({{"type": "lifespan.startup.complete"}})
        {shutdown}
        return await send({{"type": "lifespan.shutdown.complete"}})
    try:
        said, status = [ids.next() for _ in range(10)] + await ids.batch_async(40), 200
    except frazil.FrazilError as error:
        said, status = repr(error), 500
    said = json.dumps([os.getpid(), ids.node, said]).encode()
    await send({{"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]}})
    await send({{"type": "http.response.body", "body": said}})
"""
# Either of them gives back when a server has answered its last request.
ENDS = [{"before": "", "shutdown": "await ids.aclose()"}, {"before": "frazil.close_on_sigterm()", "shutdown": ""}]
WORKERS = 4
GUNICORN = ["gunicorn", f"--workers={WORKERS}", "--worker-class=uvicorn_worker.UvicornWorker", "--bind=fd://{fd}"]
UVICORN = ["uvicorn", f"--workers={WORKERS}", "--fd={fd}"]
SERVERS = {
    "gunicorn-preload": ([*GUNICORN, "--preload"], ENDS[0]),
    "gunicorn-lifespan": (GUNICORN, ENDS[0]),
    "gunicorn-sigterm": (GUNICORN, ENDS[1]),
    "uvicorn-lifespan": (UVICORN, ENDS[0]),
    "uvicorn-sigterm": (UVICORN, ENDS[1]),
}


@contextlib.contextmanager
def serving(name, folder, store):
    """The port of a server, which is handed over to it."""
    command, end = SERVERS[name]
    (folder / "shop.py").write_text(APP.format(store=store, **end))
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
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def first_requests(name, folder, store):
    """The answers to requests that come as soon as anybody takes them, until every worker has answered."""
    answers = []
    with serving(name, folder, store) as port:
        until = time.monotonic() + 120
        while len({pid for _, (pid, _, _) in answers}) < WORKERS and time.monotonic() < until:
            threads = [threading.Thread(target=lambda: answers.append(ask(port))) for _ in range(20)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
    return answers


@pytest.mark.parametrize("name", SERVERS)
def test_the_first_request_of_each_worker_is_answered(name, tmp_path):
    answers = first_requests(name, tmp_path, f"file:{tmp_path}")
    assert {status for status, _ in answers} == {200}, answers[0]
    workers = {pid: node for _, (pid, node, _) in answers}
    assert len(set(workers.values())) == len(workers) == WORKERS
    minted = [id for _, (_, _, ids) in answers for id in ids]
    assert len(set(minted)) == len(minted) == 50 * len(answers)
    assert set(slots(tmp_path, "web").values()) == {"free"}, "a server that is told to end gives back"


TASKS = """
import os, frazil
from celery import Celery
from celery.signals import worker_process_shutdown
app = Celery("tasks", broker="filesystem://", backend="file://{folder}/results")
app.conf.broker_transport_options = {{
    "data_folder_in": "{folder}/queue", "data_folder_out": "{folder}/queue", "control_folder": "{folder}/control",
}}
ids = frazil.Snowflake("standard", store="file:{folder}/store", namespace="tasks")
ids.next()

@worker_process_shutdown.connect
def give_back(**_):
    ids.close()

@app.task
def mint(count):
    return os.getpid(), [ids.next() for _ in range(count)]
"""


def test_celery(tmp_path):
    for folder in ("queue", "control", "results"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tasks.py").write_text(TASKS.format(folder=tmp_path))
    environment = {name: value for name, value in os.environ.items() if name != "FRAZIL"}
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool=prefork", "--concurrency=3", "--loglevel=WARNING"]
    worker = subprocess.Popen(command, cwd=tmp_path, env=environment, start_new_session=True)
    send = "import json, tasks; all = [tasks.mint.delay(50) for _ in range(40)]; print(json.dumps([one.get(timeout=100) for one in all]))"
    try:
        sent = subprocess.run(
            [sys.executable, "-c", send], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=120
        )
        assert sent.returncode == 0, sent.stderr
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
    answers = json.loads(sent.stdout)
    minted = [id for _, ids in answers for id in ids]
    assert len(set(minted)) == len(minted) == 2000
    assert len({pid for pid, _ in answers}) > 1
    assert in_time(lambda: set(slots(tmp_path / "store", "tasks").values()) == {"free"}), slots(tmp_path / "store", "tasks")
