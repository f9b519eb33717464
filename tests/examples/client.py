"""Many clients of the API at once. They continue if a worker or the database is down, and record the acknowledged messages."""

import dataclasses
import http.client
import itertools
import json
import os
import signal
import threading
import time

from .checks import nodes_of

TIMEOUT = 120


class Refused(Exception):
    """An answer with a status other than 200 and 201."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


class Client:
    """One client of an application. A connection serves `turns` requests, so that all workers get some."""

    def __init__(self, application, turns=20):
        self.application = application
        self.turns = turns
        self.connection = None
        self.left = 0

    def send(self, method, path, body=None):
        """Sends a request. `receive` waits for its answer."""
        if self.left == 0:
            self.close()
            self.connection = http.client.HTTPConnection("127.0.0.1", self.application.port, timeout=TIMEOUT)
            self.left = self.turns
        self.left -= 1
        text = body if isinstance(body, str | None) else json.dumps(body)
        self.connection.request(method, path, text, {"Content-Type": "application/json"} if text is not None else {})

    def receive(self):
        """Returns the answer's JSON, or raises Refused if the status is not 200 or 201."""
        response = self.connection.getresponse()
        body = response.read().decode()
        if response.status not in (200, 201):
            raise Refused(response.status, body)
        return json.loads(body)

    def ask(self, method, path, body=None):
        """Sends a request, and returns the answer."""
        try:
            self.send(method, path, body)
            return self.receive()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def insist(self, method, path, body=None, failed=lambda: None):
        """Repeats a request while the application is down. Calls `failed` for each attempt with an unknown outcome."""
        until = time.monotonic() + TIMEOUT
        while True:
            try:
                return self.ask(method, path, body)
            except (OSError, http.client.HTTPException, Refused) as failure:
                if time.monotonic() > until or (isinstance(failure, Refused) and failure.status < 500):
                    raise
                failed()
                self.close()
                time.sleep(0.05)

    def worker(self):
        """Returns the worker process at the other end of the connection, or None if it is closed."""
        return self.application.worker_of(self.connection.sock) if self.connection.sock else None

    def messages(self, query=""):
        """Returns all messages, which it requests in pages."""
        found, before = [], ""
        while page := self.insist("GET", f"/api/messages?limit=1000{query}{before}"):
            found += page
            before = f"&before={page[-1]['id']}"
        return found

    def close(self):
        if self.connection:
            self.connection.close()
        self.left = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@dataclasses.dataclass
class Driven:
    """The answers that clients have received."""

    topic: str
    acknowledged: list = dataclasses.field(default_factory=list)
    """(ID, text) of each message that was acknowledged."""
    doubtful: int = 0
    """The number of requests without an answer: there may be a row for each."""
    made_by: dict = dataclasses.field(default_factory=dict)
    """The node numbers that worker processes have used, by their process IDs; a sample."""


def drive(application, rows, clients=8, workers=4):
    """Posts messages from many threads, until there are `rows` rows from `workers` node numbers. Kills a worker in between."""
    with Client(application) as client:
        driven = Driven(client.insist("POST", "/api/topics", {"title": f"Rows of {application.port}"})["id"])
    lock = threading.Lock()
    failures, stop, until = [], threading.Event(), time.monotonic() + 3 * TIMEOUT

    def failed():
        with lock:
            driven.doubtful += 1

    def enough():
        count = len(driven.acknowledged)
        # A worker may be late. If it never comes, the checks report that.
        return count >= rows and (count >= 3 * rows or len(nodes_of(id for id, _ in driven.acknowledged)) >= workers)

    def post(client, text):
        body = {"topic": driven.topic, "author": threading.current_thread().name, "text": text}
        message = client.insist("POST", "/api/messages", body, failed)
        assert message["text"] == text and message["topic"] == driven.topic, message
        with lock:
            driven.acknowledged.append((message["id"], text))
        return message

    def work(number):
        try:
            with Client(application) as client:
                for count in itertools.count():
                    message = post(client, f"row {count} of client {number}")
                    if client.left == client.turns - 1 and (worker := client.worker()):
                        with lock:
                            driven.made_by.setdefault(worker, set()).add(message["node"])
                    if stop.is_set() or (count % 50 == 0 and enough()):
                        return
                    assert time.monotonic() < until, f"only {len(driven.acknowledged)} rows in {3 * TIMEOUT} s"
        except Exception as failure:  # noqa: BLE001  # the main thread raises it
            failures.append(failure)
            stop.set()

    def kill_one():
        """Kills a worker that has just received a request and has not answered it."""
        while time.monotonic() < until:
            with Client(application) as client:
                client.insist("GET", "/api/topics")
                worker = client.worker()
                client.send("POST", "/api/messages", {"topic": driven.topic, "author": "a victim", "text": "the last words of a worker"})
                failed()
                # Without keep-alive, this request has a new connection, which closes with the answer.
                if worker := worker or client.worker():
                    os.kill(worker, signal.SIGKILL)
                    return
        raise AssertionError("no worker process was found that holds a connection")

    threads = [threading.Thread(target=work, args=[number], name=f"client {number}", daemon=True) for number in range(clients)]
    for thread in threads:
        thread.start()
    while len(driven.acknowledged) < rows // 3 and not stop.is_set():
        time.sleep(0.01)
    if not stop.is_set():
        kill_one()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return driven
