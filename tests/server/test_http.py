"""HTTP/1.1 and HTTP/2: each request gets exactly n IDs or an error. Leaf's and Tinyid's paths."""

import asyncio
import datetime
import json
import struct
import threading

import frazil
import httpx
import jsonschema
import pytest
from replica import TIMEOUT_S

STANDARD = frazil.Layout("standard")


@pytest.mark.parametrize("count", [1, 2, 10_000])
def test_exactly_n_in_each_form(server, count):
    seen = []
    for accept, read in (
        ("*/*", lambda body: [int(number) for number in json.loads(body)["ids"]]),
        ("text/plain", lambda body: [int(line) for line in body.decode().removesuffix("\n").split("\n")]),
        ("application/octet-stream", lambda body: list(struct.unpack(f"<{count}q", body))),
    ):
        status, headers, body = server.ask("POST", f"/v1/orders/next?n={count}", {"Accept": accept})
        assert (status, headers["Cache-Control"]) == (200, "no-store")
        seen += read(body)
    assert len(seen) == 3 * count and seen == sorted(set(seen))
    assert all(STANDARD.decode(number).node == 1 for number in seen[:: max(1, count // 100)])


@pytest.mark.parametrize("name", ["orders", "items", "invoice", "odd", "photos", "ring"])
def test_every_kind_of_generator_issues_unique_ids(server, name):
    # Each ticket is a call to a store.
    count = 10 if name == "photos" else 150
    ids = [*server.ids(name, count), *server.ids(name, 1)]
    assert len(set(ids)) == count + 1
    assert name == "photos" or ids == sorted(ids)
    assert name != "odd" or all(number % 2 for number in ids)


def test_getting_mints_nothing(server):
    before = server.ids("invoice", 1)[0]
    for path in ("next", "ranges"):
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            status, headers, _ = server.ask(method, f"/v1/invoice/{path}")
            assert (status, headers["Allow"], headers["Cache-Control"]) == (405, "POST", "no-store")
    assert server.ids("invoice", 1) == [before + 1]


@pytest.mark.parametrize("http2", [False, True])
def test_the_head_of_what_may_be_read(server, http2):
    with httpx.Client(http1=not http2, http2=http2, timeout=TIMEOUT_S) as client:
        for port, path in (("http", "/openapi.json"), ("http", "/v1/orders/decode/1"), ("admin", "/healthz"), ("admin", "/readyz")):
            url = f"http://127.0.0.1:{server.ports[port]}{path}"
            whole, head = client.get(url), client.head(url)
            assert (head.status_code, head.headers["Content-Type"]) == (200, whole.headers["Content-Type"])
            assert head.headers["Content-Length"] == str(len(whole.content)) and not head.content


@pytest.mark.parametrize(
    "method, path, status, code",
    [
        ("POST", "/v1/ordesr/next", 404, "UNKNOWN_KEY"),
        ("POST", "/v1/orders/next?n=0", 400, "OUT_OF_RANGE"),
        ("POST", "/v1/orders/next?n=-1", 400, "OUT_OF_RANGE"),
        ("POST", "/v1/orders/next?n=10001", 400, "OUT_OF_RANGE"),
        ("POST", "/v1/orders/next?n=99999999999999999999", 400, "OUT_OF_RANGE"),
        ("POST", "/v1/orders/next?n=", 400, "WRONG_TYPE"),
        ("POST", "/v1/orders/next?n=1.0", 400, "WRONG_TYPE"),
        ("POST", "/v1/orders/next?n=1&n=2", 400, "SPEC"),
        ("POST", "/v1/orders/next?count=1", 400, "UNKNOWN_KEY"),
        ("POST", "/v1/orders", 404, "NOT_FOUND"),
        ("POST", "/v1/orders/nxt", 404, "NOT_FOUND"),
        ("POST", "/", 404, "NOT_FOUND"),
        ("POST", "/v1//next", 404, "UNKNOWN_KEY"),
        ("POST", "/v1/orders/decode/1", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/v1/orders/decode/next", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/v1/orders/nxt/next", 404, "NOT_FOUND"),
        ("GET", "/v1/orders/decode/x", 400, "ID_INVALID"),
        ("GET", "/v1/orders/decode/-1", 400, "ID_INVALID"),
        ("GET", "/v1/orders/decode/9223372036854775808", 400, "ID_INVALID"),
        ("GET", "/v1/invoice/decode/1", 404, "UNKNOWN_KEY"),
        ("GET", "/v1/orders/range?from=soon", 400, "SPEC"),
        ("GET", "/v1/orders/range?from=2026-01-02&to=2026-01-01", 400, "SPEC"),
        ("GET", "/v1/orders/range?to=1970-01-01", 400, "SPEC"),
        ("GET", "/v1/orders/range?from=2100-01-01", 400, "LAYOUT_EXPIRED"),
    ],
)
def test_bad_input(server, method, path, status, code):
    answered, body = server.json(method, path)
    assert (answered, body["error"]["code"]) == (status, code) and body["error"]["message"]


def test_a_body_and_a_form_that_nobody_reads(server):
    status, body = server.json("POST", "/v1/orders/next", body=b'{"n": 5}')
    assert (status, body["error"]["code"]) == (400, "SPEC")
    status, body = server.json("POST", "/v1/orders/next", headers={"Accept": "image/png"})
    assert (status, body["error"]["code"]) == (406, "NOT_ACCEPTABLE")


@pytest.mark.parametrize(
    "data",
    [b"\x00" * 100, b"POST\r\n\r\n", b"POST /v1/orders/next HTTP/1.1\r\nX: " + b"a" * 40_000 + b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nxxxx"],
)
def test_broken_requests_end_their_connection(server, data):
    answer = server.raw(data, port="http")
    assert b" 200 " not in answer
    assert len(server.ids("orders", 5)) == 5


def test_decode_and_range(server):
    [number] = server.ids("items", 1)
    parts = frazil.Layout("twitter").decode(number)
    status, body = server.json("GET", f"/v1/items/decode/{number}")
    assert status == 200
    assert body["fields"] == {"datacenter": 3, "worker": 4} and body["id"] == str(number) and body["sequence"] == parts.sequence
    assert datetime.datetime.fromisoformat(body["time"]) == parts.time
    begin, end = (datetime.datetime(2026, month, 1, tzinfo=datetime.UTC) for month in (1, 2))
    status, body = server.json("GET", "/v1/orders/range?from=2026-01-01T08:00:00%2B08:00&to=2026-02-01")
    last = STANDARD.max_id(end - datetime.timedelta(milliseconds=1))
    assert (status, body) == (200, {"first": str(STANDARD.min_id(begin)), "last": str(last)})


def test_ranges_are_the_clients(server):
    for name in ("invoice", "odd", "orders"):
        status, body = server.json("POST", f"/v1/{name}/ranges?n=500")
        assert status == 200
        ids = [int(run["first"]) + n * int(run["step"]) for run in body["ranges"] for n in range(run["count"])]
        assert len(ids) == 500 and ids == sorted(set(ids)) and server.ids(name, 1)[0] > ids[-1]


def test_the_description_is_true(server):
    status, description = server.json("GET", "/openapi.json")
    assert status == 200
    [number] = server.ids("orders", 1)
    shown = {"name": "orders", "id": number}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            place = path.format(**shown)
            for wanted, query in ((200, ""), (400, "?nonsense=1")):
                status, body = server.json(method.upper(), place + query)
                assert status == wanted, body
                answer = operation["responses"]["200"] if wanted == 200 else description["components"]["responses"]["Refused"]
                schema = answer["content"]["application/json"]["schema"]
                jsonschema.Draft202012Validator({**schema, "components": description["components"]}).validate(body)


def test_http2(server):
    """Many requests at once on one connection."""

    async def ask():
        async with httpx.AsyncClient(http1=False, http2=True, timeout=TIMEOUT_S) as client:
            url = f"http://127.0.0.1:{server.ports['http']}/v1/orders/next?n=500"
            return await asyncio.gather(*[client.post(url) for _ in range(50)])

    answers = asyncio.run(ask())
    assert {(answer.status_code, answer.http_version) for answer in answers} == {(200, "HTTP/2")}
    ids = [number for answer in answers for number in answer.json()["ids"]]
    assert len(ids) == len(set(ids)) == 25_000


def test_exhausted_when_a_tick_is_full(server):
    while (answer := server.ask("POST", "/v1/full/next?n=10"))[0] == 200:
        pass
    status, headers, body = answer
    error = json.loads(body)["error"]
    assert (status, headers["Retry-After"], error["code"]) == (503, "1", "EXHAUSTED")
    assert 0 < error["retry_after_ms"] <= 1000


def test_a_waiting_request_delays_no_other(server):
    """64 IDs take at least 3 s. The server has one thread, and serves other clients during that time."""
    waited = []
    waiting = threading.Thread(target=lambda: waited.extend(server.ids("slow", 64)))
    waiting.start()
    for _ in range(100):
        assert len(server.ids("orders", 100)) == 100
    assert waiting.is_alive()
    # A client that disconnects gives up its wait, and the next request does not queue after it.
    with server.redis() as redis:
        redis.connection_pool.get_connection().send_command("FRAZIL.NEXT", "slow", "COUNT", "64")
    waiting.join()
    assert len(set(waited)) == 64


def test_leaf_to_the_byte(server):
    status, headers, body = server.ask("GET", "/api/segment/get/invoice")
    assert (status, headers["Content-Type"], headers["Cache-Control"]) == (200, "text/plain;charset=UTF-8", "no-store")
    first = int(body)
    assert server.ask("GET", "/api/segment/get/invoice")[2] == str(first + 1).encode()
    assert STANDARD.decode(int(server.ask("GET", "/api/snowflake/get/orders")[2])).node == 1
    for path in ("segment/get/orders", "snowflake/get/invoice", "segment/get/none"):
        status, body = server.json("GET", f"/api/{path}")
        assert (status, body["error"]["code"]) == (404, "UNKNOWN_KEY")


def test_tinyid_to_the_byte(server):
    def asked(operation, **query):
        query = "&".join(f"{key}={value}" for key, value in {"bizType": "invoice", "token": "any", **query}.items())
        status, headers, body = server.ask("GET", f"/tinyid/id/{operation}?{query}")
        return status, headers["Content-Type"], body.decode()

    last = server.ids("invoice", 1)[0]
    json_type, text = "application/json;charset=UTF-8", "text/plain;charset=UTF-8"
    assert asked("nextId") == (200, json_type, f'{{"data":[{last + 1}],"code":200,"message":""}}')
    assert asked("nextId", batchSize=2) == (200, json_type, f'{{"data":[{last + 2},{last + 3}],"code":200,"message":""}}')
    assert asked("nextIdSimple") == (200, text, f"{last + 4}")
    assert asked("nextIdSimple", batchSize=3) == (200, text, f"{last + 5},{last + 6},{last + 7}")

    status, kind, body = asked("nextSegmentIdSimple")
    current, loading, end, delta, remainder = map(int, body.split(","))
    assert (status, kind, current >= last + 7, delta, remainder) == (200, text, True, 1, 0)
    assert loading == current + (end - current) * 20 // 100 and end > current
    status, kind, body = asked("nextSegmentId")
    assert (status, kind, list(json.loads(body)["data"])) == (200, json_type, ["maxId", "loadingId", "currentId", "delta", "remainder"])
    assert json.loads(body)["data"]["currentId"] >= end
    assert json.loads(body) | {"data": None} == {"data": None, "code": 200, "message": ""}
    _, _, body = asked("nextSegmentIdSimple", bizType="odd")
    current, _, end, delta, remainder = map(int, body.split(","))
    assert (delta, remainder, current % 2, end % 2) == (2, 1, 1, 1)

    # Tinyid's server would cut the batch, and answer the simple form with nothing.
    status, _, body = asked("nextId", batchSize=10_001)
    assert (status, json.loads(body)["code"], json.loads(body)["data"]) == (200, 6, None)
    for query in ({"batchSize": 10_001}, {"batchSize": 0}, {"bizType": "none"}):
        status, _, body = asked("nextIdSimple", **query)
        assert status in (400, 404) and body


def test_requests_as_spring_reads_them(server):
    """Spring decides how Leaf's and Tinyid's servers read a request, and their clients rely on it."""
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}

    def asked(path, headers=None, body=None, method="POST"):
        status, answer, body_of_answer = server.ask(method, path, headers, body)
        assert status == 200, body_of_answer
        return answer["Content-Type"], [int(number) for number in body_of_answer.decode().split(",")]

    text = "text/plain;charset=UTF-8"
    [last] = server.ids("invoice", 1)
    for path, headers, body, count in (
        ("/id/nextIdSimple", form, b"batchSize=3&token=any&bizType=invoice", 3),
        ("/id/nextIdSimple?bizType=invoice", form, b"batchSize=2", 2),
        ("/tinyid/id/nextIdSimple/?_=1&bizType=invoice&batchSize=", None, None, 1),
        ("/id/nextIdSimple?batchSize=+2+&bizType=%69nvoice&batchSize=9&x", None, None, 2),
        ("/id/nextIdSimple?bizType=invoice", {"Content-Type": "application/json"}, b'{"batchSize": 5}', 1),
        ("/api/segment/get/invoice", {"Content-Type": "application/json"}, b"{}", 1),
        ("/api/segment/get/invoice/?time=1", None, None, 1),
    ):
        assert asked(path, headers, body) == (text, list(range(last + 1, last + 1 + count))), path
        last += count
    # A string has the most preferred type. Java's clients that read a number prefer JSON.
    for accept, kind in (
        ("application/json, application/*+json", "application/json;charset=UTF-8"),
        ("text/html, image/gif, image/jpeg, */*; q=0.2", "text/html;charset=UTF-8"),
        ("text/plain, application/json, */*", text),
        ("application/json;q=0.5, */*", text),
        ("*/*", text),
    ):
        for path in ("/api/segment/get/invoice", "/id/nextIdSimple?bizType=invoice"):
            assert asked(path, {"Accept": accept}, method="GET")[0] == kind, accept
    # A key that must occur exactly once, and a body that is too long.
    assert server.ask("GET", "/id/nextIdSimple?bizType=invoice&bizType=orders")[0] == 400
    assert server.ask("POST", "/id/nextIdSimple?bizType=invoice", form, b"x=" + b"y" * 70_000)[0] == 400
