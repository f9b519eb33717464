"""A lent store: `store=frazil://` of other programs, rights, refusals, and replicas that die."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import uuid

import frazil
import pytest
import redis
import servers
from replica import TIMEOUT_S, Replica, process, run

POSTGRESQL = os.environ.get("FRAZIL_TEST_POSTGRESQL")
POD, OPERATOR = (f"{label}-{uuid.uuid4()}" for label in ("pod", "operator"))
LEASE = "standard window=6s renew=1s detached=true"


def refusal(spec):
    with pytest.raises(frazil.FrazilError) as error:
        frazil.Snowflake(spec)
    return error.value


def url(*replicas, token=None):
    hosts = ",".join(f"127.0.0.1:{replica.ports['resp']}" for replica in replicas)
    return f"frazil://{token}@{hosts}" if token else f"frazil://{hosts}"


def nodes(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "frazil", "nodes", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    ).stdout


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["shop=lend store=local"], "give --resp"),
        (["shop=lend store=memory", "--resp=:1"], "ends with the process"),
        (["shop=lend store=frazil://hushhush@h", "--resp=:1"], "is lent itself"),
        (["shop=lend", "--resp=:1"], "store=STORE"),
        (["shop=lend standard store=local", "--resp=:1"], "store=STORE"),
        (["shop=lend store=local step=5", "--resp=:1"], "step"),
        (["*=standard node=1", "--resp=:1"], "is not a name"),
    ],
)
def test_a_name_that_cannot_be_lent_is_refused_at_the_start(arguments, expected):
    ended = run("check", *arguments)
    assert ended.returncode != 0 and expected in ended.stderr and "hushhush" not in ended.stderr, ended.stderr


def test_rights_are_those_of_the_namespace(tmp_path):
    tokens = tmp_path / "tokens.toml"
    everything = 'mint = ["*"]\nlease = ["*"]\n'
    tokens.write_text(f'[pod]\nsecret = "{POD}"\nlease = ["shop"]\n[operator]\nsecret = "{OPERATOR}"\n{everything}')
    store = f"file:{tmp_path}/store"
    names = ["shop=lend store=env:STORE", "stock=lend store=env:STORE", "invoice=segment store=memory"]
    with Replica(tmp_path, *names, f"--tokens={tokens}", env={"STORE": store}) as server:
        pod, operator = url(server, token=POD), url(server, token=OPERATOR)
        with (
            frazil.Snowflake(f"{LEASE} store={pod} namespace=shop") as ids,
            frazil.Segment(f"orders store={pod} namespace=shop") as segment,
        ):
            assert ids.next() > 0 and ids.lease.healthy and ids.lease.store == url(server, token="***")
            assert segment.batch(3000) == list(range(1, 3001))
            # The store itself and the lent store show the same records.
            for address in (store, pod):
                assert f"node={ids.node} " in nodes(address, "--namespace=shop")
            with frazil.Snowflake(f"{LEASE} store={operator} namespace=stock") as other:
                assert other.next() > 0
                listed = {token: nodes(url(server, token=token), "--all") for token in (POD, OPERATOR)}
        assert "stock" in listed[OPERATOR] and "shop" in listed[OPERATOR]
        assert "stock" not in listed[POD] and "shop" in listed[POD]
        for address, namespace, name, expected in [
            (url(server), "shop", "STORE_AUTH", "write frazil://TOKEN@host"),
            (url(server, token="hushhush-hushhush"), "shop", "STORE_AUTH", "does not know the token"),
            (pod, "stock", "STORE_AUTH", 'the right to lease ranges of "stock"'),
            (pod, "none", "STORE_AUTH", 'the right to lease ranges of "none"'),
            (operator, "none", "STORE_UNSUITABLE", "none=lend store="),
            (operator, "invoice", "STORE_UNSUITABLE", "invoice=lend store="),
            (url(server, token=POD).replace("frazil://", "frazils://"), "shop", "STORE_UNREACHABLE", "write frazil://"),
            (f"frazil://127.0.0.1:{server.ports['http']}", "shop", "STORE_UNSUITABLE", "--resp"),
        ]:
            error = refusal(f"{LEASE} store={address} namespace={namespace}")
            assert error.name == name and expected in str(error), error
            assert not any(secret in str(error) for secret in (POD, OPERATOR, "hushhush", str(tmp_path))), error
        with server.redis(password=OPERATOR) as client:
            with pytest.raises(redis.ResponseError, match="is a namespace that is lent"):
                client.incr("shop")
            # A path is not a namespace, not even for an operator.
            with pytest.raises(redis.ResponseError, match="is not a name"):
                client.execute_command("FRAZIL.STORE", "LOAD", "../shop", 1000, "page:0")
        with server.redis() as client, pytest.raises(redis.AuthenticationError):
            client.execute_command("FRAZIL.STORE", "LIST", 1000)
        assert server.ask("GET", "/readyz", port="admin")[0] == 200
        # A revoked right is also refused on open connections.
        tokens.write_text(f'[operator]\nsecret = "{OPERATOR}"\n{everything}')
        with frazil.Segment(f"orders store={pod} namespace=shop wait=1s") as segment:
            server.signal(signal.SIGHUP)
            assert process.await_true(lambda: any(event["event"] == "tokens.read" for event in server.events()), TIMEOUT_S)
            assert process.await_true(lambda: segment_error(segment) == "STORE_AUTH", TIMEOUT_S)
        assert server.end() == 0
        assert not any(secret in server.log.read_text() for secret in (POD, OPERATOR, "hushhush"))


def segment_error(segment):
    with contextlib.suppress(frazil.FrazilError):
        segment.batch(1000)
    return segment.last_error and segment.last_error.name


def test_an_unreachable_store_and_an_unreachable_server_differ(tmp_path):
    with process.reserve_port() as reserved:
        away = f"redis://:hushhush@127.0.0.1:{process.port_of(reserved)}"
        result = run("shop=lend store=env:STORE", "--resp=127.0.0.1:0", env={"STORE": away})
        assert result.returncode != 0 and "shop: " in result.stderr and "hushhush" not in result.stderr, result.stderr
    folder = tmp_path / "store"
    with Replica(tmp_path, f"shop=lend store=file:{folder}") as server:
        folder.rmdir()
        folder.write_text("no folder")
        error = refusal(f"{LEASE} store={url(server)} namespace=shop")
        assert error.name.startswith("STORE_") and "its own store: " in str(error), error


def test_a_pod_continues_with_another_replica(tmp_path):
    """If a replica is killed, suspended or ended by SIGTERM, leases are still extended, and new processes start."""
    namespace = f"pods-{uuid.uuid4()}"
    with contextlib.ExitStack() as stack:
        one, two = (stack.enter_context(Replica(tmp_path, f"{namespace}=lend store={POSTGRESQL}")) for _ in range(2))
        spec = f"{LEASE} store={url(one, two)} namespace={namespace}"
        ids = stack.enter_context(frazil.Snowflake(spec))
        minted = ids.batch(1000)

        def continues():
            before = ids.lease.bound
            assert process.await_true(lambda: ids.next() and ids.lease.healthy and ids.lease.bound > before, TIMEOUT_S), (
                ids.lease.last_error
            )
            with frazil.Snowflake(spec) as other:
                assert other.node != ids.node
            minted.extend(ids.batch(1000))

        continues()
        one.signal(signal.SIGKILL)
        one.running.wait()
        continues()
        one.start()
        two.signal(signal.SIGSTOP)
        continues()
        two.signal(signal.SIGCONT)
        continues()
        assert one.end() == 0
        continues()
        assert len(set(minted)) == len(minted) and minted == sorted(minted)


def test_a_locked_namespace_does_not_delay_others(tmp_path):
    words = ["FRAZIL.STORE", "SWAP", "stuck", "30000", "", "meta", "-", "-", "x", "0", "1"]
    swap = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    with Replica(tmp_path, f"*=lend store=file:{tmp_path}/store") as server, contextlib.ExitStack() as stack:
        with server.redis() as client:
            # The write comes too late, so it writes no record.
            assert b"late" in client.execute_command(*words)
        lock = stack.enter_context((tmp_path / "store/stuck/.lock").open("ab"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        for _ in range(40):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.ports["resp"]))).sendall(swap.encode())
        with frazil.Snowflake(f"{LEASE} store={url(server)} namespace=free") as ids:
            assert ids.next() > 0


def test_replicas_that_lend_different_stores_are_refused(tmp_path):
    """The replicas are refused at the start, also if one of them was unreachable then, and under one name. Both work once they agree."""
    with contextlib.ExitStack() as stack:
        stores = [POSTGRESQL, f"file:{tmp_path}/store"]
        one, two = (stack.enter_context(Replica(tmp_path, f"*=lend store={store}")) for store in stores)
        for replicas in ((one, two), (two, one)):
            error = refusal(f"{LEASE} store={url(*replicas)} namespace=apart-{uuid.uuid4()}")
            assert error.name == "STORE_CHANGED" and "lend different stores" in str(error), error
        stop(two)
        name = servers.Proxy(one.ports["resp"])
        stack.callback(name.stop)
        namespace = f"apart-{uuid.uuid4()}"
        pods = [
            stack.enter_context(frazil.Snowflake(f"{LEASE} store={store} namespace={namespace}"))
            for store in (url(one, two), f"frazil://127.0.0.1:{name.port}")
        ]
        two.start()
        name.target = two.ports["resp"]
        name.cut()
        stop(one)
        assert process.await_true(lambda: lease_errors(pods) == {"STORE_CHANGED"}, TIMEOUT_S), lease_errors(pods)
        assert all("lends another store than" in str(ids.lease.last_error) for ids in pods)
        one.start()
        name.target = one.ports["resp"]
        assert process.await_true(lambda: lease_errors(pods) == {None}, TIMEOUT_S), lease_errors(pods)


def stop(replica):
    replica.signal(signal.SIGKILL)
    replica.running.wait()


def lease_errors(pods):
    for ids in pods:
        with contextlib.suppress(frazil.FrazilError):
            ids.next()
    return {ids.lease.last_error and ids.lease.last_error.name for ids in pods}
