"""Six programs that repeatedly request IDs in four protocols, each in its own thread."""

import http.client
import json
import threading

import httpx
import numpy
import redis

COUNT = 1000
# The pause between two requests, which leaves the machine to the servers.
PAUSE_S = 0.12
RETRY_S = 0.02
# The time limit of a request. A balancer ends requests that no replica answers.
TIMEOUT_S = 60


class Refused(Exception):
    """An answer that is an error."""


class Client:
    """A client that sends a failed request again, on another connection, until it is answered."""

    title: str
    protocol: str
    name = "orders"

    def __init__(self, ports):
        self.ports = ports
        self.batches = []
        """The IDs of each answer."""
        self.retries = 0
        self.failed = 0
        """The number of requests whose first retry failed, too."""
        self.errors = {}
        self._connection = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name=self.title, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._over.set()
        self._thread.join()

    def count(self):
        """Returns the number of IDs that the client has received."""
        return sum(map(len, self.batches))

    def ids(self):
        """Returns all received IDs as an array."""
        return numpy.concatenate(self.batches)

    def _work(self):
        while not self._over.wait(PAUSE_S):
            tries = 0
            while not self._over.is_set():
                try:
                    self._connection = self._connection or self.connect()
                    batch = self.ask(self._connection)
                    assert len(batch) == COUNT, f"{len(batch)} IDs from {self.title}"
                    self.batches.append(numpy.array(batch, dtype=numpy.int64))
                    break
                except (OSError, Refused, http.client.HTTPException, httpx.HTTPError, redis.RedisError) as error:
                    self.errors[str(error)[:120]] = self.errors.get(str(error)[:120], 0) + 1
                    self.end()
                    tries += 1
                    self.retries += 1
                    self.failed += tries == 2
                    self._over.wait(RETRY_S)
        self.end()

    def end(self):
        if self._connection:
            self._connection.close()
        self._connection = None


class Http1(Client):
    protocol = "HTTP/1.1"
    accept: str

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=TIMEOUT_S)

    def ask(self, connection):
        connection.request("POST", f"/v1/{self.name}/next?n={COUNT}", headers={"Accept": self.accept})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Refused(body.decode())
        return self.read(body)


class Json(Http1):
    title = "HTTP/1.1, JSON"
    accept = "application/json"

    def read(self, body):
        return [int(text) for text in json.loads(body)["ids"]]


class Lines(Http1):
    title = "HTTP/1.1, text"
    accept = "text/plain"

    def read(self, body):
        return [int(line) for line in body.split()]


class Packed(Http1):
    title = "HTTP/1.1, packed"
    accept = "application/octet-stream"

    def read(self, body):
        return numpy.frombuffer(body, dtype="<i8")


class Http2(Client):
    title = protocol = "HTTP/2"

    def connect(self):
        return httpx.Client(http1=False, http2=True, timeout=TIMEOUT_S)

    def ask(self, connection):
        url = f"http://127.0.0.1:{self.ports['http']}/v1/{self.name}/next?n={COUNT}"
        answer = connection.post(url, headers={"Accept": "application/octet-stream"})
        if answer.status_code != 200:
            raise Refused(answer.text)
        return numpy.frombuffer(answer.content, dtype="<i8")


class Resp2(Client):
    title = protocol = "RESP 2"
    version = 2

    def connect(self):
        # No retries by the library, because `Client` retries.
        return redis.Redis(port=self.ports["resp"], protocol=self.version, socket_timeout=TIMEOUT_S, retry=None)

    def ask(self, connection):
        return [int(text) for text in connection.execute_command("FRAZIL.NEXT", self.name, "COUNT", COUNT)]


class Resp3(Resp2):
    """A client of a segment. It takes most numbers in one command, and some in a pipeline."""

    title, protocol = "RESP 3, a segment", "RESP 3"
    version = 3
    name = "invoice"
    singles = 20

    def ask(self, connection):
        with connection.pipeline(transaction=False) as pipeline:
            for _ in range(self.singles):
                pipeline.incr(self.name)
            pipeline.incrby(self.name, COUNT - self.singles)
            *singles, last = pipeline.execute()
        return [*singles, *range(last - (COUNT - self.singles) + 1, last + 1)]


ALL = (Json, Lines, Packed, Http2, Resp2, Resp3)
