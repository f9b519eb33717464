"""Redis' protocol with Redis' own clients."""

import re
import subprocess

import pytest
import redis


@pytest.fixture(params=[2, 3])
def client(server, request):
    with server.redis(protocol=request.param, decode_responses=True) as client:
        yield client


def test_ids(client):
    # The library sends INCRBY, like many others.
    first = client.incr("invoice")
    assert client.execute_command("INCR", "invoice") == first + 1
    ids = [client.execute_command("FRAZIL.NEXT", "orders"), *client.execute_command("frazil.next", "orders", "count", 1000)]
    assert all(isinstance(number, str) for number in ids) and len(ids) == 1001
    assert list(map(int, ids)) == sorted(map(int, set(ids)))
    assert client.incr("orders") > int(ids[-1])


def test_a_row_of_a_segment(client):
    """The last n numbers up to the answer belong to the client, as after INCRBY, even if a range ends."""
    last = client.incr("invoice")
    for count in (1, 10, 90, 100):
        now = client.incrby("invoice", count)
        assert now - count >= last
        last = now
    assert client.incr("invoice") > last


def test_a_pipeline_is_answered_in_its_order(client):
    pipeline = client.pipeline(transaction=False)
    for n in range(3000):
        pipeline.execute_command("FRAZIL.NEXT", "orders") if n % 3 else pipeline.echo(n)
    answers = pipeline.execute()
    assert answers[::3] == [str(n) for n in range(0, 3000, 3)]
    ids = [int(answer) for n, answer in enumerate(answers) if n % 3]
    assert ids == sorted(set(ids))


def test_commands_with_which_clients_connect(client):
    assert client.ping() and client.echo("x") == "x" and client.client_id() > 0
    assert client.client_setname("me") and client.client_getname() == "me"
    assert client.info()["server_name"] == "frazil" and client.config_get("save") == {"save": ""}
    assert client.execute_command("SELECT", 0) and client.execute_command("RESET") in ("RESET", True)


@pytest.mark.parametrize(
    "command, word",
    [
        ("INCR none", "UNKNOWN_KEY"),
        ("FRAZIL.NEXT none", "UNKNOWN_KEY"),
        ("FRAZIL.NEXT orders COUNT 0", "OUT_OF_RANGE"),
        ("FRAZIL.NEXT orders COUNT -1", "OUT_OF_RANGE"),
        ("FRAZIL.NEXT orders COUNT 10001", "OUT_OF_RANGE"),
        ("FRAZIL.NEXT orders COUNT x", "WRONG_TYPE"),
        ("FRAZIL.NEXT orders 5", "SPEC"),
        ("FRAZIL.NEXT", "SPEC"),
        ("INCR", "SPEC"),
        ("INCRBY invoice 0", "OUT_OF_RANGE"),
        ("INCRBY orders 5", "UNKNOWN_KEY"),
        ("INCRBY odd 5", "OUT_OF_RANGE"),
        ("GET orders", "ERR"),
        ("SET orders 1", "ERR"),
        ("SELECT 1", "ERR"),
        ("CLIENT KILL x", "ERR"),
        ("AUTH something-that-is-no-token", "ERR"),
        ("HELLO 4", "NOPROTO"),
    ],
)
def test_bad_input(server, command, word):
    assert re.match(rf"-{word} \S.*\r\n$", server.raw(f"{command}\r\n".encode()).decode())


def test_exhausted_when_a_tick_is_full(server):
    with server.redis() as client, pytest.raises(redis.ResponseError, match="^EXHAUSTED "):
        for _ in range(100):
            client.execute_command("FRAZIL.NEXT", "full", "COUNT", 10)


@pytest.mark.parametrize(
    "data", [b"*1\r\n+PING\r\n", b"*99999\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$999999\r\n", b"a" * 70_000, b"*2\r\n$4\r\nINCR\r\n$x"]
)
def test_broken_requests_end_their_connection(server, data):
    # The command before the broken one is answered.
    answer = server.raw(b"*1\r\n$4\r\nPING\r\n" + data + b"\r\n*1\r\n$4\r\nPING\r\n")
    assert answer == b"" or re.fullmatch(rb"\+PONG\r\n-ERR Protocol error: .*\r\n", answer)
    with server.redis() as client:
        assert client.ping()


def test_redis_own_programs(server):
    port = ["-p", str(server.ports["resp"])]
    result = subprocess.run(
        ["redis-cli", "-3", *port, "FRAZIL.NEXT", "orders", "COUNT", "3"], capture_output=True, text=True, check=True
    ).stdout
    assert len({int(line) for line in result.split()}) == 3
    command = ["redis-benchmark", *port, "-n", "2000", "-c", "10", "-P", "16", "--csv", "FRAZIL.NEXT", "orders"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "requests" in result.stdout or "rps" in result.stdout, result.stdout
    assert "error" not in (result.stdout + result.stderr).lower() and "WARNING" not in result.stderr
