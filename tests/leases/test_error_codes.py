"""Every error code: a test provokes it through the public API, and follows its remedy. The test is named after the code."""

import array
import contextlib
import datetime
import os
import pathlib
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import time

import frazil
import pytest
import servers
from frazil import errors
from helper import elsewhere

START = datetime.datetime(2025, 6, 1, tzinfo=datetime.UTC)
ONE_MS = datetime.timedelta(milliseconds=1)
# A layout with two node numbers.
SMALL = "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01'"
QUICK = "window=3s renew=400ms"
FRAZIL = pathlib.Path(sys.executable).with_name("frazil")


@contextlib.contextmanager
def refused(kind, *says):
    """Asserts that the body raises this error, and that its message contains each of these texts."""
    with pytest.raises(kind) as raised:
        yield raised
    for text in says:
        assert text in str(raised.value)


def manual(line="standard node=1", time=START, **options):
    ids = frazil.Snowflake(f"{line} clock=manual detached=true", **options)
    if time:
        ids.set_time(time)
    return ids


def begun(server):
    """Returns the URL of a new Redis, after a command by which its first start does not wait."""
    subprocess.run([FRAZIL, "nodes", server.url, "--begin", "standard"], check=True, capture_output=True)
    return server.url


def in_child(work):
    """Runs `work` in a forked child, and returns its result or its error."""
    theirs, ours = os.pipe()
    if os.fork() == 0:
        try:
            answer = work()
        except frazil.FrazilError as error:
            answer = error
        os.write(ours, pickle.dumps(answer))
        os._exit(0)
    os.close(ours)
    with open(theirs, "rb") as answer:
        return pickle.load(answer)


# Input: 1xx.


def test_spec_names_the_presets_and_the_one_that_was_meant():
    with refused(errors.SpecError, "standrad", "did you mean standard?"):
        frazil.Snowflake("standrad node=1")
    assert frazil.Snowflake("standard node=1 detached=true").next()


def test_unknown_key_names_those_of_the_layout():
    with refused(errors.UnknownKeyError, '"shard"', "datacenter, worker"):
        frazil.Snowflake("twitter shard=1")
    assert frazil.Snowflake("twitter datacenter=1 worker=1 detached=true").next()


def test_out_of_range_says_what_is_allowed():
    with refused(errors.OutOfRangeError, "worker=32", "0 to 31"):
        frazil.Snowflake("twitter datacenter=1 worker=32")
    assert frazil.Snowflake("twitter datacenter=1 worker=31 detached=true").next()


def test_layout_invalid_says_how_many_bits_must_go():
    with refused(errors.LayoutInvalidError, "needs 73 bits", "10 must go"):
        frazil.Layout("time:37@1ms server:20 sequence:16 epoch:2025-01-01")
    assert frazil.Layout("time:37@1ms server:10 sequence:16 epoch:2025-01-01")


def test_id_invalid_says_what_an_id_is():
    with refused(errors.IdInvalidError, "-1 is negative", f"0 to {2**63 - 1}"):
        frazil.Layout("standard").decode(-1)
    assert frazil.Layout("standard").decode(2**63 - 1).sequence == 4095


def test_wrong_type_names_both_types():
    with refused(errors.WrongTypeError, "an int or a decimal str, not float"):
        frazil.Layout("standard").decode(2.0**60)
    assert frazil.Layout("standard").decode(str(2**60)).id == 2**60


def test_closed_ends_one_handle_alone():
    ids, other = frazil.Snowflake("standard node=101"), frazil.Snowflake("standard node=101")
    ids.close()
    with refused(errors.ClosedError, "closed"):
        ids.next()
    assert other.next()


# Time: 2xx.


def test_layout_expired_gives_an_epoch_with_time_left():
    with refused(errors.LayoutExpiredError, "ended", "epoch=") as raised:
        frazil.Snowflake("baidu worker=1 detached=true")
    epoch = re.search(r"epoch=(\S+Z)", str(raised.value))[1]
    assert frazil.Snowflake(f"baidu worker=1 detached=true epoch={epoch}").next() >= 0


def test_before_epoch_gives_the_lower_bound_of_a_query():
    layout = frazil.Layout("twitter")
    with refused(errors.BeforeEpochError, "2010-11-04", "take 0"):
        layout.min_id(datetime.datetime.fromtimestamp(0, datetime.UTC))
    assert layout.decode(0).time.year == 2010


def test_clock_back_ends_where_it_says():
    ids = manual("standard node=1 rollback=error")
    first = ids.next()
    ids.set_time(START - 10 * ONE_MS)
    with refused(errors.ClockBackError, "went back by 10 ms", "set it to 2025-06-01T00:00:00Z or later"):
        ids.next()
    ids.set_time(START)
    assert ids.next() > first


def test_exhausted_says_when_the_next_id_is_due():
    ids = manual("standard node=1 exhausted=error")
    buffer = array.array("q", bytes(8 * 5000))
    with refused(errors.ExhaustedError, "4096 a tick", "set it to 2025-06-01T00:00:00.001Z or later") as raised:
        ids.fill(buffer)
    written = raised.value.written
    ids.set_time(START + ONE_MS)
    assert len({*buffer[:written], *ids.batch(4000)}) == written + 4000


def test_would_block_says_for_how_long():
    ids = frazil.Snowflake("standard node=102")
    with refused(errors.WouldBlockError) as raised:
        for _ in range(1000):
            ids.batch(4096, timeout=0)
    time.sleep(raised.value.retry_after + 0.001)
    assert ids.next(timeout=0)


def test_clock_not_set_wants_set_time():
    ids = manual(time=None)
    with refused(errors.ClockNotSetError, "set_time"):
        ids.next()
    ids.set_time(START)
    assert ids.next()


def test_clock_skew_ends_with_the_skew():
    """Without the refusal, a process whose clock is a year ahead of the store's would keep its number for a year."""
    with servers.start("redis") as server:
        spec = f"standard store={begun(server)} {QUICK}"
        assert frazil.Snowflake(spec, timeout=20).next()
        program = """
try:
    frazil.Snowflake(spec, timeout=20)
except frazil.FrazilError as error:
    print(json.dumps([error.name, str(error)]))
"""
        [[name, text]] = elsewhere(spec, program, ahead=365 * 24 * 3600)
        assert name == "CLOCK_SKEW" and "set the clocks by NTP" in text
        [id] = elsewhere(spec, "print(json.dumps(frazil.Snowflake(spec, timeout=20).next()))")
        assert id > 0


# Node numbers: 3xx.


def test_node_missing_names_both_ways():
    with refused(errors.NodeMissingError, "datacenter=7 worker=7", "store=local"):
        frazil.Snowflake("twitter")
    assert frazil.Snowflake("twitter datacenter=7 worker=7 detached=true").next()
    assert frazil.Snowflake("twitter store=memory").next()


def test_node_in_use_ends_with_the_other_process(monkeypatch):
    # Without this variable, each process of the tests has its own scope.
    monkeypatch.setenv("FRAZIL_GUARD_SCOPE", "error codes")
    with subprocess.Popen(
        [sys.executable, "-c", "import frazil; ids = frazil.Snowflake('standard node=103'); ids.next(); print(1, flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout.readline() == "1\n"
        ids = frazil.Snowflake("standard node=103")
        with refused(errors.NodeInUseError, "node number 103 is in use", "give each process its own number"):
            ids.next(timeout=0.1)
        assert frazil.Snowflake("standard node=104").next()
        other.communicate("")
    assert ids.next()


def test_no_free_node_names_the_holders(tmp_path):
    held = [frazil.Snowflake(f"{SMALL} store=file:{tmp_path}", detached=True) for _ in range(2)]
    with refused(errors.NoFreeNodeError, "all 2 node numbers", "0 by", "1 by"):
        frazil.Snowflake(f"{SMALL} store=file:{tmp_path}", detached=True, timeout=0.5)
    held[0].release_node()
    assert frazil.Snowflake(f"{SMALL} store=file:{tmp_path}", detached=True, timeout=5).next()


def test_forked_has_its_child_open_a_generator():
    ids = frazil.Snowflake("standard node=105")
    first = ids.next()
    error = in_child(ids.next)
    assert isinstance(error, errors.ForkedError) and "open one with another number in the child" in str(error)
    assert in_child(lambda: frazil.Snowflake("standard node=106").next()) != first
    assert ids.next() > first


def test_copied_wants_another_number():
    def copy():
        ids = frazil.Snowflake("standard node=107")
        ids.next()
        frazil.restored()
        try:
            return ids.next()
        except errors.CopiedError as error:
            return str(error), frazil.Snowflake("standard node=108").next()

    text, id = in_child(copy)
    assert "open a generator with a number that no other copy has" in text and id > 0


def test_conflict_names_both_openings():
    first = frazil.Snowflake("leaf worker=1000")
    with refused(errors.ConflictError, "start=random:100", "start=zero"):
        frazil.Snowflake("leaf worker=1000 start=zero")
    assert frazil.Snowflake("leaf worker=1000").next() != first.next()


def test_layout_mismatch_has_the_new_layout_continue(tmp_path):
    store = f"store=file:{tmp_path}"
    ids = frazil.Snowflake(f"twitter {store} namespace=old")
    highest = ids.next()
    with refused(
        errors.LayoutMismatchError, "changes the layout while processes run", "another namespace=NAME", "after= the highest ID"
    ) as raised:
        frazil.Snowflake(f"leaf {store} namespace=old")
    [command] = re.findall("`(frazil nodes [^`]*)`", str(raised.value))
    said = subprocess.run([FRAZIL, *shlex.split(command)[1:]], capture_output=True, text=True, check=True).stdout
    assert "IDs of the old layout end at" in said
    new = frazil.Snowflake(f"leaf {store} namespace=old")
    first = new.next()
    with refused(errors.LayoutMismatchError, "the layout was changed, so start the program with the first one"):
        while True:
            highest = ids.next()
    assert first > highest


def test_lease_exhausted_leases_another_number(tmp_path):
    spec = f"{SMALL} store=file:{tmp_path} rollback=error"
    ids, other = (frazil.Snowflake(spec, detached=True) for _ in range(2))
    ids.next()
    ids.release_node()
    thief = frazil.Snowflake(spec, detached=True)
    with refused(errors.LeaseExhaustedError, "node number", "all 2 node numbers that the spec allows are held") as raised:
        ids.next(timeout=0.5)
    thief.release_node()
    time.sleep(raised.value.retry_after)
    assert ids.next(timeout=5) != other.next()


# The store: 4xx.


def test_store_unreachable_ends_once_the_server_answers():
    with servers.start("postgresql") as server:
        server.kill9()
        with refused(errors.StoreUnreachableError, "cannot be reached", "Connection refused"):
            frazil.Snowflake(f"standard store={server.url}", timeout=1)
        server.restart()
        # A failed address is tried again after a second.
        time.sleep(1.5)
        assert frazil.Snowflake(f"standard store={server.url}", timeout=20).next()


def test_store_auth_shows_no_password():
    with servers.start("redis") as server:
        url = begun(server).replace("//", "//:{}@")
        server.call("CONFIG", "SET", "requirepass", "the right one")
        with refused(errors.StoreAuthError, "does not know this user with this password") as raised:
            frazil.Snowflake(f"standard store={url.format('a%20wrong%20one')}", timeout=20)
        assert "wrong" not in str(raised.value)
        assert frazil.Snowflake(f"standard store={url.format('the%20right%20one')}", timeout=20).next()


def test_store_readonly_ends_once_it_can_be_written():
    with servers.start("postgresql") as server:
        line = f"standard store={server.url} namespace=readonly"
        assert frazil.Snowflake(line, timeout=20).next()
        server.sql("ALTER DATABASE frazil SET default_transaction_read_only = on")
        [refusal] = elsewhere(
            line,
            """
try:
    frazil.Snowflake(spec, timeout=20)
except frazil.FrazilError as error:
    print(json.dumps([error.name, str(error)]))
""",
        )
        assert refusal[0] == "STORE_READONLY" and "read-only" in refusal[1]
        server.sql("BEGIN READ WRITE; ALTER DATABASE frazil RESET default_transaction_read_only; COMMIT")
        assert elsewhere(line, "print(json.dumps(frazil.Snowflake(spec, timeout=20).next()))")


def test_store_corrupt_continues_in_another_namespace(tmp_path):
    line = f"standard store=file:{tmp_path}"
    ids = frazil.Snowflake(f"{line} namespace=damaged")
    highest = ids.next()
    ids.close()
    for path in (tmp_path / "damaged").rglob("*"):
        if path.is_file() and path.stat().st_size:
            path.write_bytes(b"\xff" * 64)
    with refused(errors.StoreCorruptError):
        frazil.Snowflake(f"{line} namespace=damaged", timeout=5)
    assert frazil.Snowflake(f"{line} namespace=next after={highest}").next() > highest


def test_store_changed_begins_above_what_was_given_out(tmp_path):
    folder = tmp_path / "store"
    segment = frazil.Segment("orders", store=f"file:{folder}", step=10)
    segment.next()
    shutil.copytree(folder, tmp_path / "backup")
    highest = max(segment.batch(100))
    put_in_place(tmp_path / "backup", folder)
    with refused(errors.StoreChangedError, "when it is certain which numbers were given out") as raised:
        for _ in range(100_000):
            highest = max(highest, segment.next())
    follow(raised.value, start=highest + 1)
    assert frazil.Segment("orders", store=f"file:{folder}", step=10).next() > highest


def put_in_place(backup, folder):
    """Replaces a store's folder, also if the store's thread, which writes just then, makes it again."""
    for attempt in range(100):
        folder.rename(folder.with_name(f"lost-{attempt}"))
        with contextlib.suppress(OSError):
            return backup.rename(folder)
    raise AssertionError(f"{folder} is made again and again")


def follow(error, start):
    """Runs the command at the end of an error's text, with a start in place of N."""
    command = re.search(r"frazil (segment .*)$", str(error))[1].replace("--start=N", f"--start={start}")
    return subprocess.run([FRAZIL, *shlex.split(command)], check=True, capture_output=True, text=True).stdout


def test_store_unsuitable_names_a_lease_that_fits():
    with refused(errors.StoreUnsuitableError, "lease=disposable", "use shared-slots"):
        frazil.Snowflake("standard store=redis://127.0.0.1:1/0 lease=disposable")
    with servers.start("redis") as server:
        assert frazil.Snowflake(f"standard store={begun(server)} lease=shared-slots", timeout=20).next()


# Segments: 5xx.


def test_segment_exhausted_at_the_last_number_of_63_bits():
    segment = frazil.Segment("end", store="memory", namespace="codes", start=2**63 - 1)
    with refused(errors.SegmentExhaustedError, f"all numbers up to {2**63 - 1} have been handed out"):
        segment.batch(2)
    assert frazil.Segment("another", store="memory", namespace="codes").next() == 1


def test_segment_mismatch_says_what_the_tag_has():
    first = frazil.Segment("odd", store="memory", namespace="codes", increment=2, offset=1).next()
    with refused(errors.SegmentMismatchError, "the tag has increment=2 offset=1"):
        frazil.Segment("odd", store="memory", namespace="codes", increment=2, offset=0)
    assert frazil.Segment("odd", store="memory", namespace="codes", increment=2, offset=1).next() != first


def test_tag_missing_begins_by_the_command():
    with servers.start("redis") as server:
        with refused(errors.TagMissingError, "this store may have forgotten it") as raised:
            frazil.Segment("orders", store=server.url, timeout=20)
        assert follow(raised.value, start=1)
        assert frazil.Segment("orders", store=server.url, timeout=20).next() == 1


# The Rust suites test the others: a client that is not built (STORE_NOT_BUILT), and a defect (INTERNAL).
ELSEWHERE = {"STORE_NOT_BUILT", "INTERNAL"}


def test_each_code_has_a_test_of_its_name():
    names = [name for name in globals() if name.startswith("test_")]
    for _, code, _ in frazil.ERRORS:
        assert code in ELSEWHERE or any(name.startswith(f"test_{code.lower()}_") for name in names), code
