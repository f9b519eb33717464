"""A generator in Celery's prefork pool, with Redis as the broker, as in production."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import servers

FIRSTS = 200
PROCESSES = 50
# A busy machine takes more than a minute to start the pool.
TIMEOUT_S = 400
TASKS = """
import time, frazil
from celery import Celery
from celery.signals import worker_process_shutdown
app = Celery("tasks", broker="{redis}", backend="{redis}")
# Celery kills a process that is not up within 4 s, as on a busy machine, and forks another.
app.conf.worker_proc_alive_timeout = {timeout_s}
ids = frazil.Snowflake("standard", store="file:{folder}/store", namespace="tasks")
ids.next()

@worker_process_shutdown.connect
def give_back(**_):
    ids.close()

tasks = 0

@app.task
def mint(count):
    global tasks
    tasks += 1
    minted = [ids.next() for _ in range(count)]
    time.sleep(0.5)    # others have their turn
    return tasks, minted
"""
SEND = f"""
import json, sys, tasks
sent = [tasks.mint.delay(50) for _ in range(int(sys.argv[1]))]
print(json.dumps([one.get(timeout={TIMEOUT_S}) for one in sent]))
"""


@contextlib.contextmanager
def working(folder, redis):
    """Runs Celery; yields its process, and a function that sends a number of tasks and returns their results."""
    (folder / "tasks.py").write_text(TASKS.format(folder=folder, redis=redis.url, timeout_s=TIMEOUT_S))
    environment = {name: value for name, value in os.environ.items() if name != "FRAZIL"}
    options = ["--pool=prefork", f"--concurrency={PROCESSES}", "--loglevel=WARNING"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "tasks", "worker", *options], cwd=folder, env=environment, start_new_session=True
    )

    def send(count):
        command = [sys.executable, "-c", SEND, str(count)]
        sent = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=TIMEOUT_S + 20)
        assert sent.returncode == 0, sent.stderr
        answers = json.loads(sent.stdout)
        minted = [id for _, ids in answers for id in ids]
        assert len(set(minted)) == len(minted) == 50 * count
        return answers

    try:
        yield worker, send
    finally:
        # All processes of the pool are in its session.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def held(folder):
    """Returns the node numbers that were not released, as the command line lists them."""
    command = [sys.executable, "-m", "frazil", "nodes", f"file:{folder}/store", "--namespace=tasks", "--json"]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)
    return [slot["node"] for slot in listed["slots"] if slot["state"] == "held"]


def test_the_first_task_of_each_forked_process_is_done(tmp_path_factory):
    # The test counts the first call of each process of a pool after the fork. Each round has a new pool: to replace a process, Celery would
    # fork while it runs threads, and such a child may hang in one of Python's locks.
    with servers.start("redis") as redis:
        for _ in range(FIRSTS // PROCESSES):
            folder, firsts, until = tmp_path_factory.mktemp("tasks"), 0, time.monotonic() + TIMEOUT_S
            with working(folder, redis) as (worker, send):
                while firsts < PROCESSES and time.monotonic() < until:
                    firsts += sum(turn == 1 for turn, _ in send(2 * PROCESSES))
                worker.terminate()
                worker.wait(TIMEOUT_S)
            assert firsts == PROCESSES
            until = time.monotonic() + 60
            while held(folder) and time.monotonic() < until:
                time.sleep(0.1)
            assert held(folder) == []


# Each process of the pool opens the same number after the fork.
NUMBERED = """
import os, time, frazil
from celery import Celery
app = Celery("numbered", broker="{redis}", backend="{redis}")
app.conf.worker_proc_alive_timeout = {timeout_s}

@app.task
def mint():
    global ids
    minted = []
    try:
        ids = frazil.Snowflake("standard", node=1, start="zero", shared={shared})
        # Others have their turn: the first ID of each of these milliseconds.
        for _ in range(200):
            minted.append(ids.next())
            time.sleep(0.001)
        return os.getpid(), minted
    except frazil.errors.NodeInUseError as error:
        return os.getpid(), str(error)
"""
SEND_NUMBERED = """
import json, numbered, time
answers, until = [], time.monotonic() + 120
while len({pid for pid, _ in answers}) < 4 and time.monotonic() < until:
    sent = [numbered.mint.delay() for _ in range(16)]
    answers += [one.get(timeout=120) for one in sent]
print(json.dumps(answers))
"""


@pytest.mark.parametrize("shared", [False, True])
def test_one_process_of_a_pool_issues_from_a_fixed_number(shared, tmp_path, monkeypatch):
    monkeypatch.setenv("FRAZIL_GUARD_SCOPE", str(tmp_path))
    with servers.start("redis") as redis:
        (tmp_path / "numbered.py").write_text(NUMBERED.format(redis=redis.url, timeout_s=TIMEOUT_S, shared=shared))
        command = [sys.executable, "-m", "celery", "-A", "numbered", "worker", "--pool=prefork", "--concurrency=4", "--loglevel=WARNING"]
        worker = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
        try:
            sent = subprocess.run(
                [sys.executable, "-c", SEND_NUMBERED], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=240
            )
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
    answers = json.loads(sent.stdout)
    issued = [(pid, ids) for pid, ids in answers if isinstance(ids, list)]
    refused = [said for _, said in answers if isinstance(said, str)]
    minted = [id for _, ids in issued for id in ids]
    assert len({pid for pid, _ in answers}) == 4
    if shared:
        # The control: the duplicates that the guard prevents.
        assert not refused and len(set(minted)) < len(minted)
        return
    [holder] = {pid for pid, _ in issued}
    assert refused and all(f"by process {holder} (" in said for said in refused), refused
    assert len(set(minted)) == len(minted)
