"""A Django project as in production: gunicorn with forked workers, Celery's prefork pool."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from django_shop import FOLDER, PROJECT, migrate

# isort: split
# The following imports need Django's setup, which the import above does.
import project.celery  # noqa: F401  # whose tasks shared_task makes
from project import routing
from shop.models import Item
from shop.tasks import mint

WORKERS = 4
BATCH = 50


@pytest.fixture(scope="module", autouse=True)
def tables():
    migrate()
    routing.alias = "postgresql"
    yield
    Item.objects.all().delete()


@contextlib.contextmanager
def running(*command, **environment):
    """Runs a program of the project in a new session. All its processes end with the `with` block."""
    environment = {**os.environ, "SHOP_ALIAS": "postgresql", **environment}
    program = subprocess.Popen([sys.executable, "-m", *command], cwd=PROJECT, env=environment, pass_fds=FDS, start_new_session=True)
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


FDS = []


@contextlib.contextmanager
def gunicorn(*options, **environment):
    """Serves the project. Yields the program, and a function that requests BATCH new rows."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        FDS[:] = [listening.fileno()]
        port = listening.getsockname()[1]
        with running("gunicorn", f"--bind=fd://{FDS[0]}", f"--workers={WORKERS}", *options, "project.wsgi", **environment) as program:
            FDS.clear()
            yield program, lambda: ask(port)


def ask(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/mint/{BATCH}/", timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        return json.load(refused)
    except ConnectionError:  # its worker was killed
        return None


def held(store):
    """Returns the node numbers that were not released."""
    command = [sys.executable, "-m", "frazil", "nodes", store, "--json"]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)
    return [slot["node"] for slot in listed["slots"] if slot["state"] == "held"]


def check(ids):
    """Checks that no ID occurs twice, and that each is in the table."""
    assert len(set(ids)) == len(ids)
    assert Item.objects.filter(pk__in=ids).count() == len(ids)


@pytest.mark.parametrize("opened", [False, True], ids=["opened-by-workers", "opened-before-the-fork"])
def test_gunicorn_with_preload(opened):
    store = f"file:{FOLDER}/gunicorn-{opened}"
    environment = {"SHOP_FRAZIL": f"standard store={store}", **({"SHOP_MINTS_FIRST": "1"} if opened else {})}
    answers, killed = [], set()
    with gunicorn("--preload", **environment) as (server, mint_rows), ThreadPoolExecutor(8) as threads:
        until = time.monotonic() + 240
        # Waits until all workers have answered, including the successor of a killed one.
        while len({answer["pid"] for answer in answers}) < WORKERS + 1 and time.monotonic() < until:
            answers += filter(None, [asked.result() for asked in [threads.submit(mint_rows) for _ in range(24)]])
            if not killed:
                killed.add(answers[0]["pid"])
                os.kill(answers[0]["pid"], signal.SIGKILL)
        server.terminate()
        server.wait(60)
    assert len({answer["pid"] for answer in answers}) > WORKERS
    ids = [int(id) for answer in answers for id in answer["ids"]]
    assert len(ids) == BATCH * len(answers) >= 24 * BATCH
    check(ids)
    # A killed worker releases nothing.
    assert len(held(store)) <= 1


def test_gunicorn_with_preload_refuses_one_number_for_all():
    with gunicorn("--preload", SHOP_FRAZIL="standard node=7") as (_, mint_rows):
        refused = mint_rows()
    assert refused["error"] == "FORKED" and "same node number" in refused["why"]


def test_one_process_of_gunicorn_may_have_a_fixed_number():
    with gunicorn("--workers=1", "--threads=4", SHOP_FRAZIL="standard node=7") as (_, mint_rows), ThreadPoolExecutor(4) as threads:
        answers = [asked.result() for asked in [threads.submit(mint_rows) for _ in range(8)]]
    assert len({answer["pid"] for answer in answers}) == 1
    check([int(id) for answer in answers for id in answer["ids"]])


CELERY = ("celery", "-A", "project", "worker", "--pool=prefork", f"--concurrency={WORKERS}", "--loglevel=WARNING")


def test_celery_prefork():
    store = f"file:{FOLDER}/celery"
    answers = []
    with running(*CELERY, SHOP_FRAZIL=f"standard store={store}") as worker:
        until = time.monotonic() + 240
        while len({pid for pid, _ in answers}) < WORKERS and time.monotonic() < until:
            answers += [sent.get(timeout=120) for sent in [mint.delay(BATCH) for _ in range(4 * WORKERS)]]
        worker.terminate()
        worker.wait(60)
        until = time.monotonic() + 60
        while held(store) and time.monotonic() < until:
            time.sleep(0.1)
    assert len({pid for pid, _ in answers}) == WORKERS
    check([id for _, ids in answers for id in ids])
    assert held(store) == []


def test_celery_prefork_refuses_one_number_for_all():
    with running(*CELERY, SHOP_FRAZIL="standard node=7"), pytest.raises(Exception, match="same node number") as refused:
        mint.delay(1).get(timeout=120)
    assert type(refused.value).__name__ == "ForkedError"
