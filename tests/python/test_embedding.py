"""Programs that strain their interpreter: subinterpreters, purged modules, frozen clocks, the interpreter's end."""

import array
import ctypes
import io
import mmap
import sys
import threading
import time
from datetime import UTC, datetime

import frazil
import numpy
import pytest
from conftest import at, open_manual
from freezegun import freeze_time
from test_generator import in_new_process

SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import sys
said = "import frazil\\nfrazil.uuid7()"

def refused():
    own = interpreters.create()
    try:
        problem = interpreters.run_string(own, said)
    except Exception as error:
        problem = str(error)
    interpreters.destroy(own)
    return str(problem)
"""


def test_a_subinterpreter_is_refused_and_leaves_the_main_one_whole():
    said = in_new_process(f"""{SUBINTERPRETER}
assert "WSGIApplicationGroup" in refused()
import frazil
try:
    frazil.Snowflake("nonsense")
except frazil.FrazilError as error:
    print(type(error) is frazil.errors.SpecError)
print(frazil.uuid.uuid7().version, frazil.Layout("twitter").decode(1).time.year)
assert "WSGIApplicationGroup" in refused()
print(frazil.Snowflake("standard", node=1).next() > 0)
""")
    assert said == "True\n7 2010\nTrue\n"


def test_a_signals_handler_may_repeat_the_first_call_that_it_interrupts():
    said = in_new_process("""
import faulthandler, signal, sys
import frazil

faulthandler.dump_traceback_later(60, exit=True)
for name in ("datetime", "uuid"):
    sys.modules.pop(name, None)


class Interrupts:
    def find_spec(self, name, *_):
        if name in ("datetime", "uuid"):
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGUSR1)


def ask(*_):
    print(frazil.uuid.uuid7().version, frazil.Layout("twitter").decode(1).time.year)


signal.signal(signal.SIGUSR1, ask)
for call in (frazil.uuid.uuid7, frazil.Layout("twitter").decode(1).__getattribute__):
    sys.meta_path.insert(0, Interrupts())
    call(*(["time"] if call is not frazil.uuid.uuid7 else []))
print("done")
""")
    assert said.splitlines()[0] == "7 2010" and said.splitlines()[-1] == "done"


def test_a_second_import_raises_the_first_ones_classes():
    said = in_new_process("""
import sys, frazil as first
first.Snowflake("standard", node=1)
for name in [name for name in sys.modules if name.startswith("frazil")]:
    del sys.modules[name]
import frazil as second
for mine in (first, second):
    try:
        second.Snowflake("nonsense")
    except mine.errors.SpecError as error:
        print(isinstance(error, mine.FrazilError), mine.Snowflake("standard", node=1).next() > 0)
print(second is first, second.Snowflake is first.Snowflake)
""")
    assert said == "True True\nTrue True\nFalse True\n"


def test_a_second_import_does_not_close_generators_earlier():
    """A flush that was registered between two imports still finds its generator open."""
    said = in_new_process("""
import atexit, sys, tempfile, frazil
ids = frazil.Snowflake("standard", store=f"file:{tempfile.mkdtemp()}")
atexit.register(lambda: print(ids.next() > 0))
for name in [name for name in sys.modules if name.startswith("frazil")]:
    del sys.modules[name]
import frazil
""")
    assert said == "True\n"


def test_a_flush_that_is_registered_before_the_first_lease_finds_its_generator():
    said = in_new_process("""
import atexit, tempfile, frazil
box = []
atexit.register(lambda: print(box[0].next() > 0))
box.append(frazil.Snowflake("standard", store=f"file:{tempfile.mkdtemp()}"))
""")
    assert said == "True\n"


def test_times_are_real_after_a_first_use_in_a_frozen_one():
    said = in_new_process("""
import datetime
from freezegun import freeze_time
# freezegun would also replace a name in a module's namespace.
kept = [datetime.datetime]
with freeze_time("2025-06-01"):
    import frazil
    layout = frazil.Layout("twitter")
    assert type(layout.epoch) is kept[0], type(layout.epoch)
    assert layout.min_id(datetime.datetime.now(datetime.UTC)) > 0
print(type(layout.epoch) is datetime.datetime is kept[0])
print(layout.min_id(datetime.datetime(2025, 6, 1, tzinfo=datetime.UTC)) > 0)
""")
    assert said == "True\nTrue\n"


def test_frozen_times_are_times():
    ids = open_manual()
    with freeze_time("2025-06-01T12:00:00Z"):
        frozen = datetime.now(UTC)
        ids.set_time(frozen)
    assert ids.layout.decode(ids.next()).time == frozen == at(1748779200000)


def released_view():
    view = memoryview(array.array("q", [0] * 8))
    view.release()
    return view


def closed_map():
    memory = mmap.mmap(-1, 64)
    memory.close()
    return memory


def released_file():
    view = io.BytesIO(bytes(64)).getbuffer().cast("q")
    view.release()
    return view


@pytest.mark.parametrize("make", [released_view, closed_map, released_file])
def test_released_memory_is_refused(make):
    ids = open_manual()
    with pytest.raises(frazil.errors.WrongTypeError, match="buffer must be a writable"):
        ids.fill(make())
    assert ids.credit() == open_manual().credit()


class Interrupting(int):
    def __repr__(self):
        raise KeyboardInterrupt

    __str__ = __repr__


class Failing(int):
    def __repr__(self):
        raise LookupError("mine")


def test_exceptions_that_end_a_program_are_not_swallowed():
    ids = open_manual()
    for call in (ids.batch, frazil.Layout("twitter").decode, lambda value: ids.next(timeout=value)):
        with pytest.raises(KeyboardInterrupt):
            call(Interrupting(-(2**70)))
        with pytest.raises(frazil.FrazilError, match="out of range"):
            call(Failing(-(2**70)))


def with_buffer(raised):
    """Makes an object whose buffer raises, as with `__buffer__` of Python 3.12, but in every version."""

    class Slot(ctypes.Structure):
        _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]

    class Spec(ctypes.Structure):
        _fields_ = [
            ("name", ctypes.c_char_p),
            ("basicsize", ctypes.c_int),
            ("itemsize", ctypes.c_int),
            ("flags", ctypes.c_uint),
            ("slots", ctypes.POINTER(Slot)),
        ]

    class Raising:
        def __len__(self):
            raise raised

    get_buffer, default_flags = 1, 1 << 18
    # PyObject_Size takes the object, and fails if its `__len__` does.
    fails = ctypes.cast(ctypes.pythonapi.PyObject_Size, ctypes.c_void_p)
    spec = Spec(b"tests.RaisingBuffer", 0, 0, default_flags, (Slot * 2)(Slot(get_buffer, fails), Slot(0, None)))
    make = ctypes.pythonapi.PyType_FromSpecWithBases
    make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(Spec), ctypes.py_object]
    return make(ctypes.byref(spec), (Raising,))()


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (KeyboardInterrupt, KeyboardInterrupt),
        (MemoryError, MemoryError),
        (BufferError, frazil.errors.WrongTypeError),
        (TypeError, frazil.errors.WrongTypeError),
    ],
)
def test_exceptions_of_a_buffer(raised, seen):
    buffer = with_buffer(raised)
    with pytest.raises(seen):
        open_manual().fill(buffer)


def test_a_failed_batch_reports_zero_written():
    for make in (open_manual, lambda: open_manual("twitter datacenter=1 worker=1 exhausted=error")):
        for count in (4097, 50_000):
            with pytest.raises(frazil.FrazilError) as raised:
                make().batch(count)
            assert raised.value.written == 0
            with pytest.raises(frazil.FrazilError) as raised:
                make().fill(array.array("q", bytes(8 * count)))
            assert raised.value.written > 4000


@pytest.mark.parametrize("fill", [lambda orders, memory: orders.fill(memory), lambda orders, memory: orders.batch(len(memory))])
def test_other_threads_run_during_a_large_fill(fill):
    """A call releases the GIL while it copies a segment's prefetched numbers."""
    orders = frazil.Segment("orders", store="memory", namespace="filling", step=1 << 40)
    memory = numpy.zeros(4_000_000, dtype=numpy.int64)
    began, ended, turns, interval = threading.Event(), threading.Event(), 0, sys.getswitchinterval()

    def turn():
        nonlocal turns
        while not ended.is_set():
            turns += 1
            began.set()
            time.sleep(0)

    thread = threading.Thread(target=turn)
    # From here on, a thread keeps the GIL until it releases the GIL itself.
    sys.setswitchinterval(1000)
    try:
        thread.start()
        began.wait()
        during = 0
        for _ in range(20):
            before = turns
            fill(orders, memory)
            during = max(during, turns - before)
            if during > 10:
                break
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert during > 10


@pytest.mark.parametrize("call", ["ids.fill(memory)", "ids.batch(20_000)", "ids.layout.decode_many(memory)", "ids.array(20_000)"])
def test_the_interpreter_ends_while_much_is_made(call):
    code = f"""
import sys, threading, numpy, frazil
ids = frazil.Snowflake("standard", node=1, exhausted="ahead:1h")
memory, running = numpy.full(many, ids.next()), threading.Barrier(4)
# Python switches threads every microsecond, so also in the middle of a call.
sys.setswitchinterval(1e-6)

def go_on():
    {call}
    running.wait()
    while True:
        {call}

for _ in range(3):
    threading.Thread(target=go_on, daemon=True).start()
running.wait()
"""
    for many in [1_000_000, 10_000] * 4:
        assert in_new_process(f"many = {many}\n{code}") == ""


# Calls of frazil that run Python code, and Python code that frazil's own threads run.
RUN_PYTHON = {
    "zone": "ids.layout.min_id(datetime.datetime(2026, 1, 1, tzinfo=Zone()))",
    "option": "frazil.Snowflake('standard', node=2, epoch=datetime.datetime(2026, 1, 1, tzinfo=Zone()))",
    "settle": "Loop().run_until_complete(wait())",
    "wake": "woken = True; Loop().run_until_complete(wait())",
    "log": "logging.getLogger('frazil').addFilter(end); frazil.Snowflake('standard', store='memory')",
}


@pytest.mark.parametrize("call", RUN_PYTHON.values(), ids=RUN_PYTHON)
def test_a_thread_that_the_interpreter_ends_in_a_call_ends_nothing_else(call):
    said = in_new_process(f"""
import asyncio, ctypes, datetime, logging, threading, time, frazil
ended, woken = threading.Event(), False

def end(*_):
    # Like CPython before 3.14, which releases the GIL first.
    ended.set()
    ctypes.CDLL(None).pthread_exit(None)

class Zone(datetime.tzinfo):
    utcoffset = end

class Future(asyncio.Future):
    set_result = end

class Loop(asyncio.SelectorEventLoop):
    def create_future(self):
        return super().create_future() if woken else Future(loop=self)

    def call_soon_threadsafe(self, *what):
        return end() if woken else super().call_soon_threadsafe(*what)

async def wait():
    await ids.abatch(10_000)

logging.getLogger("frazil").setLevel(logging.INFO)
ids = frazil.Snowflake("standard", node=1)
def call():
    global woken
    {call}
threading.Thread(target=call, daemon=True).start()
assert ended.wait(60)
time.sleep(0.2)
print(ids.next() > 0)
""")
    assert said == "True\n"
