"""Rates in IDs a second, for tokens and for clients' addresses."""

import contextlib
import http.client
import socket
import threading
import time

import pytest
import redis
from replica import TIMEOUT_S, Replica, run

TOKEN, OTHER = "a token of sixteen", "another of sixteen"
NAMES = ("orders=standard node=1 compat=tinyid", "invoice=segment store=memory step=1000 compat=tinyid")
MOST = 1000


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rates")
    tokens = folder / "tokens.toml"
    rights = 'mint = ["*"]\nlease = ["*"]\n'
    tokens.write_text(f'[slow]\nsecret = "{TOKEN}"\n{rights}ids-per-second = {MOST}\n[fast]\nsecret = "{OTHER}"\n{rights}')
    with Replica(folder, *NAMES, f"--tokens={tokens}") as server:
        yield server


def refusal(ask):
    """Repeats a request until it is refused. Unless the machine is too slow, that is the second one."""
    for _ in range(20):
        if (refused := ask()) is not None:
            return refused
    raise AssertionError("nothing is refused")


def over_http(server, path, token, headers=None):
    def ask():
        status, head, body = server.ask("POST", path, headers={"Authorization": f"Bearer {token}"} | (headers or {}))
        assert status in (200, 429), body
        return (head, body) if status == 429 else None

    return ask


def over_resp(client, *words):
    def ask():
        try:
            client.execute_command(*words)
        except redis.ResponseError as error:
            return str(error)

    return ask


@pytest.mark.parametrize("path", [f"/v1/orders/next?n={MOST}", f"/v1/invoice/ranges?n={MOST}"])
def test_a_token_has_its_rate_over_http(limited, path):
    head, body = refusal(over_http(limited, path, TOKEN))
    assert b"TOO_MANY_REQUESTS" in body and b'the token \\"slow\\" may take 1000 IDs a second' in body
    # A client that waits for Retry-After is served.
    time.sleep(int(head["Retry-After"]))
    assert over_http(limited, path, TOKEN)() is None
    assert all(over_http(limited, path, OTHER)() is None for _ in range(5))


def test_single_ids_count_as_well(limited):
    refused = refusal(over_http(limited, f"/v1/orders/next?n={MOST}", TOKEN))
    assert refused
    # Many at once, because on a busy machine, requests one after another may not exceed the rate.
    asked = f"POST /v1/orders/next HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode() * 100
    answers = b""
    with socket.create_connection(("127.0.0.1", limited.ports["http"]), timeout=TIMEOUT_S) as connection:
        for asked_so_far in range(100, 20 * MOST, 100):
            connection.sendall(asked)
            while answers.count(b"HTTP/1.1 ") < asked_so_far:
                answers += connection.recv(65536)
            if b"HTTP/1.1 429" in answers:
                break
    assert b"HTTP/1.1 200" in answers and b"HTTP/1.1 429" in answers


def test_a_token_has_its_rate_over_resp(limited):
    with limited.redis(password=TOKEN) as client:
        for words in (("FRAZIL.NEXT", "orders", "COUNT", MOST), ("INCRBY", "invoice", MOST)):
            assert refusal(over_resp(client, *words)).startswith("TOO_MANY_REQUESTS")
        with pytest.raises(redis.ResponseError, match="OUT_OF_RANGE COUNT=1001 is out of range: 1 to 1000"):
            client.execute_command("FRAZIL.NEXT", "orders", "COUNT", MOST + 1)


def test_a_token_of_tinyid_has_its_rate(limited):
    def ask(path):
        status, body = limited.json("GET", path)
        return body if status == 200 and body["code"] != 200 else None

    for path in (
        f"/id/nextId?bizType=orders&token={TOKEN.replace(' ', '+')}&batchSize={MOST}",
        f"/id/nextSegmentId?bizType=invoice&token={TOKEN.replace(' ', '+')}",
    ):
        assert "may take 1000 IDs a second" in refusal(lambda path=path: ask(path))["message"]


def test_a_reload_changes_a_rate(tmp_path):
    tokens = tmp_path / "tokens.toml"
    text = f'[slow]\nsecret = "{TOKEN}"\nmint = ["*"]\n'
    tokens.write_text(text)
    with Replica(tmp_path, NAMES[0], f"--tokens={tokens}") as server:
        assert all(over_http(server, f"/v1/orders/next?n={MOST}", TOKEN)() is None for _ in range(5))
        tokens.write_text(f"{text}ids-per-second = {MOST}\n")
        server.reload("tokens.read")
        assert refusal(over_http(server, f"/v1/orders/next?n={MOST}", TOKEN))
    for most in (0, -1, 2**32):
        tokens.write_text(f"{text}ids-per-second = {most}\n")
        result = run("check", NAMES[0], f"--tokens={tokens}")
        wanted = f"tokens.toml: [slow] ids-per-second={most} is out of range: 1 to 4294967295; without it, no limit"
        assert result.returncode == 1 and wanted in result.stderr, result


def test_an_address_has_its_rate(tmp_path):
    with Replica(tmp_path, *NAMES, f"--max-ids-per-address={MOST}") as server:
        assert refusal(over_http(server, f"/v1/orders/next?n={MOST}", ""))
        with server.redis() as client:
            # Each command counts, on all connections of the address.
            message = refusal(lambda: next(filter(None, (over_resp(client, "PING")() for _ in range(20 * MOST))), None))
            assert message.startswith("TOO_MANY_REQUESTS this address may take 1000 IDs a second")
        # Probes are answered.
        assert all(server.ask("GET", "/readyz", port="admin")[0] == 200 for _ in range(20))
        other = http.client.HTTPConnection("127.0.0.1", server.ports["http"], timeout=TIMEOUT_S, source_address=("127.0.0.2", 0))
        other.request("POST", f"/v1/orders/next?n={MOST}")
        assert other.getresponse().status == 200
        other.close()


def test_a_web_page_is_refused_at_any_rate(tmp_path):
    """The RESP port closes a connection that speaks HTTP, also if the rate limit refuses the line that shows it."""
    with Replica(tmp_path, *NAMES, "--max-ids-per-address=2") as server:
        requests = b"PING\r\n" * 3, b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"INCR invoice\r\n"
        with socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=TIMEOUT_S) as connection:
            for request in requests:
                connection.sendall(request)
                time.sleep(0.6 if b"POST" in request else 0)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                came = b"".join(iter(lambda: connection.recv(4096), b""))
                assert b":1\r\n" not in came and came.endswith(b"this port does not speak HTTP: use that of --http\r\n")
        time.sleep(1)
        assert server.ids("invoice", 1) == [1]


def test_requests_with_a_body_count_as_well(tmp_path):
    with Replica(tmp_path, NAMES[0], "--max-ids-per-address=5") as server:
        statuses = {server.ask("POST", "/v1/orders/next", body=b"x")[0] for _ in range(20)}
        assert statuses == {400, 429}


def test_a_lender_with_a_rate_is_asked_again(tmp_path):
    """A program waits for a lent store that is at its rate limit, and does not give up."""
    with Replica(tmp_path, f"shop=lend store=file:{tmp_path}/store", "--max-ids-per-address=5") as lender:
        with lender.redis() as client:
            assert refusal(over_resp(client, "PING"))
        spec = f"mine=standard store=frazil://127.0.0.1:{lender.ports['resp']} namespace=shop"
        with Replica(tmp_path, spec) as borrower:
            assert len(borrower.ids("mine", 3)) == 3


@pytest.mark.parametrize("login", [("AUTH", TOKEN), ("HELLO", "3", "AUTH", "pods", TOKEN)], ids=["AUTH", "HELLO"])
def test_others_at_its_address_do_not_keep_a_borrower_out(tmp_path, login):
    """If the others' rate could refuse its login, its lease would end."""
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[pods]\nsecret = "{TOKEN}"\nlease = ["*"]\n')
    settings = (f"shop=lend store=file:{tmp_path}/store", f"--tokens={tokens}", "--max-ids-per-address=1")
    with Replica(tmp_path, *settings) as lender, socket.create_connection(("127.0.0.1", lender.ports["resp"]), TIMEOUT_S) as other:
        for _ in range(5):
            other.sendall(b"PING\r\n" * 3)
            assert b"TOO_MANY_REQUESTS" in other.recv(4096)
            words = login, ("FRAZIL.STORE", "LOAD", "shop", "1000", "page:0")
            commands = [f"*{len(each)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in each) for each in words]
            came = lender.raw("".join(commands).encode())
            assert came.startswith((b"+OK\r\n*", b"%7\r\n")) and b"-TOO_MANY" not in came


def test_only_issued_ids_count_for_a_rate(tmp_path):
    """A name that has no IDs uses none of the rate, and the rest of a range only counts its own size."""
    empty = "empty=layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=2 exhausted=error compat=tinyid"
    with Replica(tmp_path, empty, *NAMES, f"--max-ids-per-address={MOST}") as server:
        server.ids("invoice", 900)
        time.sleep(1)
        for _ in range(20):
            assert server.json("POST", "/v1/empty/next?n=100")[0] == 503
            assert server.json("GET", "/id/nextId?bizType=empty&batchSize=100")[1]["code"] == 6
        with server.redis() as client:
            for _ in range(20):
                assert over_resp(client, "FRAZIL.NEXT", "empty", "COUNT", 100)().startswith("EXHAUSTED")
        assert over_http(server, f"/v1/orders/next?n={MOST // 2}", "")() is None
        time.sleep(1)
        # The rest of the range, 100 numbers.
        assert server.json("GET", "/id/nextSegmentId?bizType=invoice")[1]["data"]["maxId"] == 1000
        assert over_http(server, f"/v1/orders/next?n={MOST // 2}", "")() is None


def test_a_reload_restarts_no_rate(tmp_path):
    """Frequent reloads, a new secret or a changed rate do not allow a burst."""
    tokens = tmp_path / "tokens.toml"

    def write(secret, most):
        tokens.write_text(f'[slow]\nsecret = "{secret}"\nmint = ["*"]\nids-per-second = {most}\n')

    write(TOKEN, 1)
    with Replica(tmp_path, NAMES[0], f"--tokens={tokens}") as server:
        since, served = time.monotonic(), 0
        for secret, most in [(TOKEN, 1)] * 5 + [(OTHER, 1)] * 5 + [(OTHER, 2), (TOKEN, 1)] * 5:
            write(secret, most)
            server.reload("tokens.read")
            served += over_http(server, "/v1/orders/next", secret)() is None
        assert served <= 1 + 2 * (time.monotonic() - since)


def test_metrics_are_served_at_any_rate(tmp_path):
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[operator]\nsecret = "{TOKEN}"\nmint = ["*"]\nadmin = true\nids-per-second = 1\n')
    with Replica(tmp_path, NAMES[0], f"--tokens={tokens}") as server:
        assert refusal(over_http(server, "/v1/orders/next", TOKEN))
        statuses = {server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"}, port="admin")[0] for _ in range(5)}
        assert statuses == {200}


def test_no_client_takes_more_than_its_rate(limited):
    with limited.redis(password=TOKEN) as client:
        since, taken = time.monotonic(), 0
        while time.monotonic() < since + 2:
            try:
                taken += len(client.execute_command("FRAZIL.NEXT", "orders", "COUNT", MOST // 10))
            except redis.ResponseError:
                time.sleep(0.01)
        most = MOST * (1 + time.monotonic() - since)
        assert MOST <= taken <= most, (taken, most)


@pytest.mark.parametrize("is_of_token", [True, False], ids=["token", "address"])
def test_clients_that_wait_for_retry_after_are_served(tmp_path, is_of_token):
    """Each client requests a whole second's IDs. A refused request uses none of the rate; otherwise no client would ever get its batch."""
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[slow]\nsecret = "{TOKEN}"\nmint = ["*"]\nids-per-second = 10\n')
    with Replica(tmp_path, NAMES[0], f"--tokens={tokens}" if is_of_token else "--max-ids-per-address=10") as server:
        served = []

        def client():
            for _ in range(40):
                status, body = server.json("POST", "/v1/orders/next?n=10", headers={"Authorization": f"Bearer {TOKEN}"})
                if status == 200:
                    served.append(body)
                    return
                time.sleep(body["error"]["retry_after_ms"] / 1000)

        clients = [threading.Thread(target=client) for _ in range(4)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        assert len(served) == len(clients)


def test_an_address_does_not_pay_for_what_a_token_is_refused(tmp_path):
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(
        "".join(
            f'[{name}]\nsecret = "{secret}"\nmint = ["*"]\n{rate}'
            for name, secret, rate in (
                ("slow", TOKEN, f"ids-per-second = {MOST}\n"),
                ("fast", OTHER, ""),
            )
        )
    )
    with Replica(tmp_path, NAMES[0], f"--tokens={tokens}", f"--max-ids-per-address={10 * MOST}") as server:
        for _ in range(30):
            over_http(server, f"/v1/orders/next?n={MOST}", TOKEN)()
        assert over_http(server, f"/v1/orders/next?n={5 * MOST}", OTHER)() is None
