"""The types of frazil: 64-bit, time-ordered, globally unique IDs.

Every refusal is a `FrazilError`, with one class for each kind; `ERRORS` lists the kinds. IDs are `int`, 0 to
2^63 - 1. Times are aware datetimes, and returned times are in UTC. Threads may share every object here.
"""

import datetime
import uuid
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Literal, Self, SupportsIndex, TypeAlias, TypedDict, Unpack, final

import numpy
from typing_extensions import Buffer, disjoint_base

__all__ = [
    "ERRORS",
    "METRICS",
    "Buffered",
    "FrazilError",
    "Layout",
    "Lease",
    "Metric",
    "Numbers",
    "Parts",
    "Segment",
    "Snowflake",
    "Stats",
    "Tickets",
    "__version__",
    "close_all",
    "close_on_sigterm",
    "format_id",
    "parse_id",
    "restored",
    "stats",
]

__version__: Final[str]

METRICS: Final[tuple[Metric, ...]]
"""The table of the values of `Stats`."""

ERRORS: Final[tuple[tuple[int, str, str], ...]]
"""The error table: code, name and meaning of each kind, in the order of the codes."""

_Format: TypeAlias = Literal["decimal", "base62", "base32", "hex", "check"]
# numpy says that its arrays are buffers from Python 3.12 on.
_Memory: TypeAlias = Buffer | numpy.ndarray[Any, Any]
_Id: TypeAlias = SupportsIndex | str
_Timeout: TypeAlias = float | datetime.timedelta | None
_Number: TypeAlias = SupportsIndex | str | None
_Duration: TypeAlias = str | datetime.timedelta | None
_Stores: TypeAlias = str | list[str] | tuple[str, ...] | None
_Numbers: TypeAlias = _Number | list[int] | tuple[int, ...] | list[str] | tuple[str, ...]

# An editor completes the words; a type checker also accepts "wait:D" and "ahead:D", and "alternate:N", "random:N" and "continue:N".
_Reaction: TypeAlias = Literal["error", "wait", "ahead"] | str | None
_Start: TypeAlias = Literal["zero"] | str | None

class _Options(TypedDict, total=False):
    """A generator's options: the node fields of the presets, and the keys of the spec line. None means not given."""

    node: _Number
    datacenter: _Number
    worker: _Number
    machine: _Number
    process: _Number
    shard: _Number
    server: _Number
    fields: Mapping[str, _Number] | None
    """Node fields of a custom layout, by name."""
    layout: str | Layout | None
    epoch: str | SupportsIndex | datetime.datetime | None
    """An aware datetime, or Unix milliseconds, or text as in the spec line."""
    store: str | None
    namespace: str | None
    lease: Literal["shared-slots", "disposable"] | None
    window: _Duration
    renew: _Duration
    rollback: _Reaction
    exhausted: _Reaction
    start: _Start
    lag: _Duration
    after: _Id | None
    clock: Literal["system", "manual"] | None
    detached: bool | str | None
    shared: bool | str | None

class _RingOptions(_Options, total=False):
    """A generator's options, and the ring's."""

    size: _Number
    refill: _Number
    empty: Literal["error", "wait"] | str | None
    """Also "wait:D"."""

class _TicketsOptions(TypedDict, total=False):
    store: _Stores
    namespace: str | None
    start: _Number
    wait: _Duration

class _SegmentOptions(_TicketsOptions, total=False):
    table: Literal["leaf", "tinyid"] | None
    step: _Number
    increment: _Number
    offset: _Numbers

def cli(arguments: list[str], /) -> int:
    """Runs the command line with the arguments after the program's name; returns the exit status."""

def _ids(ids: _Memory | Iterable[_Id], /) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]: ...
def _texts(
    column: Any, /
) -> tuple[numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]], numpy.ndarray[tuple[int], numpy.dtype[numpy.bool_]]] | None: ...
def _lease(*fields: Any) -> Lease: ...
def _open_pickled(class_: type[Any], spec: str, only: str | None) -> Any: ...
def _reopen(class_: type[Any], spec: str, only: str | None) -> Any: ...
def close_all() -> None:
    """Closes every generator of the process that leases its number, and releases the numbers.

    It waits for the stores, up to 0.5 s. Call it at the end of a program whose exit runs no Python. Every later call of such a
    handle raises ClosedError.
    """

def close_on_sigterm() -> None:
    """Releases leased numbers on SIGTERM. Then calls the program's own handler, or lets SIGTERM end the program.

    Python ends on SIGTERM without running `atexit` functions, and the next start may wait for a number that was not released. On SIGTERM every
    generator that leased its number is closed, within 0.5 s for all together. That happens on the main thread, even while it waits in a call
    of frazil. Call it once, after the program has set its own handler, which runs after the generators are closed. Do not call it if that
    handler continues to answer requests, as in gunicorn's own workers. If SIGTERM is ignored, or a library in C handles it, nothing is changed.

    Raises OutOfRangeError on any thread but the main one.
    """

def format_id(id: _Id, format: _Format, /) -> str:
    """An ID as text of a fixed width, which sorts like the number. It has 19 characters of decimal, 11 of base62, 13
    of base32, 16 of hex or 14 with a check symbol.

    The ID is an int, or its decimal text. In JSON an ID is `str(id)`, without the zeros that pad decimal here. Raises IdInvalidError for a
    number outside 0 to 2^63 - 1.

    >>> frazil.format_id(1541815603606036480, "base62")
    '1ptWyK4WgZU'
    """

def parse_id(text: str, format: _Format = "decimal", /, *, prefix: str = "") -> int:
    """Parses the text of an ID. Decimal, the default, may also be without padding. A prefix such as `order_` must come
    before the ID, in either case.

    Raises IdInvalidError for a wrong length, a bad character, a wrong check symbol, another prefix, or a number above 2^63 - 1.

    >>> frazil.parse_id("1ptWyK4WgZU", "base62")
    1541815603606036480
    >>> frazil.parse_id("order_1asd-13xh-1f800k", "check", prefix="order_")
    1541815603606036480
    """

def restored() -> None:
    """Notifies frazil that the process was restored from a snapshot, or copied with its machine. For a runtime's hook.

    From here on it issues nothing that a copy may also issue: leased node numbers, prefetched numbers and random bits are dropped, and the
    next call leases anew. Generators whose numbers are given without a store, or come from store="local", "file:..." or "memory", raise
    CopiedError. IDs that the program got before are in all copies. Called by itself after a restore under AWS Lambda SnapStart; not needed where
    the machine has a VMClock device, or where FRAZIL_GENERATION names a file.
    """

def stats() -> list[Stats]:
    """The counts of every open generator and segment of the process. Sorted by kind and spec. Equal kind and spec
    share one entry.

    A fixed number without a store stays open as long as the process runs. Asks no store.
    """

def uuid4() -> uuid.UUID:
    """A new version 4 UUID: 122 random bits from the operating system.

    >>> frazil.uuid.uuid4().version
    4
    """

def uuid7(time: datetime.datetime | None = None, /) -> uuid.UUID:
    """A new version 7 UUID: the time in milliseconds, then random bits.

    Strictly increasing within the process over all threads, even after the clock went back. A forked child begins a new
    sequence. With an aware datetime the UUID has that time, for rows that already have one. Such UUIDs of one millisecond have no order.
    Raises BeforeEpochError and LayoutExpiredError for a time before 1970 or after the year 10889.

    >>> frazil.uuid.uuid7() < frazil.uuid.uuid7()
    True
    """

def uuid7_min(time: datetime.datetime, /) -> uuid.UUID:
    """The smallest version 7 UUID of a millisecond. In a query: `id >= uuid7_min(t)`.

    Raises BeforeEpochError for an instant before 1970.

    >>> frazil.uuid.uuid7_min(datetime.datetime(2022, 2, 22, 19, 22, 22, tzinfo=datetime.timezone.utc))
    UUID('017f22e2-79b0-7000-8000-000000000000')
    """

def uuid7_max(time: datetime.datetime, /) -> uuid.UUID:
    """The largest version 7 UUID of the millisecond that holds an instant: `id <= uuid7_max(t)` in a query.

    Raises BeforeEpochError for an instant before 1970.
    """

def uuid_time(id: uuid.UUID | str, /) -> datetime.datetime:
    """The time in a UUID of version 7, 6 or 1. In UTC, rounded down to milliseconds.

    A str is 8-4-4-4-12 hexadecimal digits, also in braces or after `urn:uuid:`, or 32 digits without hyphens.
    Raises IdInvalidError for any other text, for a version that holds no time, and for a time after the year 9999.

    >>> frazil.uuid.uuid_time("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
    datetime.datetime(2022, 2, 22, 19, 22, 22, tzinfo=datetime.timezone.utc)
    """

@final
class ObjectId:
    """MongoDB's ObjectId: without an argument a new one, otherwise from its 24 hexadecimal digits or its 12 bytes.

    All new ones of a process differ, and a forked child has another random part. Immutable; `bytes(id)`
    is what MongoDB stores, and it sorts like its text. Raises IdInvalidError for other text or another number of
    bytes; BeforeEpochError and LayoutExpiredError for a clock before 1970-01-01 or after 2106-02-07T06:28:15Z.

    >>> frazil.objectid.ObjectId("507f1f77bcf86cd799439011").time
    datetime.datetime(2012, 10, 17, 21, 13, 27, tzinfo=datetime.timezone.utc)
    """

    def __new__(cls, value: str | bytes | None = None, /) -> Self: ...
    @staticmethod
    def min_id(time: datetime.datetime, /) -> ObjectId:
        """The smallest ObjectId of the second at an instant. In a query: `_id >= min_id(t)`."""

    @staticmethod
    def max_id(time: datetime.datetime, /) -> ObjectId:
        """The largest ObjectId of the second that holds an instant: `_id <= max_id(t)` in a query."""

    @property
    def time(self) -> datetime.datetime:
        """The second in which it was made, in UTC."""

    @property
    def random(self) -> int:
        """The 40 random bits of the process."""

    @property
    def counter(self) -> int:
        """The counter within the process, 24 bits."""

    @property
    def machine(self) -> int:
        """The first 24 bits of `random`, where older drivers wrote a number of the machine."""

    @property
    def process(self) -> int:
        """The last 16 bits of `random`, where older drivers wrote the process ID."""

    def __bytes__(self) -> bytes: ...
    def __reduce__(self) -> tuple[type[ObjectId], tuple[bytes]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: ObjectId, /) -> bool: ...
    def __le__(self, other: ObjectId, /) -> bool: ...
    def __gt__(self, other: ObjectId, /) -> bool: ...
    def __ge__(self, other: ObjectId, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Snowflake:
    """A generator of IDs: unique, and strictly increasing over all threads and handles of the process.

    The first argument is a spec line, and keywords add to it; with neither, the environment variable FRAZIL is
    read. A fixed node number without a store first waits for the next tick: 1 ms with most presets,
    at most 1 s. With a store, a number is leased. That may wait for a crashed holder or the first start on Redis (66 s; never
    more than 105 s with the default `window`). The interpreter's exit closes open generators and releases their numbers. Releases the
    GIL while waiting. On the thread of a running event loop no call waits for more than 2 ms (the first one in a forked child, and
    opening with store="memory": 1 s). It raises WouldBlockError, and the async forms wait without blocking the loop.

    `window`, `renew` and `lag` may be a timedelta, `epoch` an aware datetime, and `fields` is a dict of the node fields of a custom layout.
    A copy is the same generator. A pickle holds the spec, and opens the generator when it is loaded. In another process that needs a store;
    without one each use of the loaded generator raises ForkedError. A spec with a secret cannot be pickled (SpecError: use store="env:NAME").

    `timeout` limits the wait of a call, from its start: seconds, or a timedelta. 0 does not wait, and infinity waits without this limit.
    When it is over the call raises WouldBlockError. An open that waits for a held number raises NodeInUseError or NoFreeNodeError instead,
    which name the holders. If the next ID is known to come later, the call raises at once. With `timeout` a call waits that long even in a
    running event loop. Ctrl-C, or an exception from a signal's handler, ends a wait on the main thread. `close` ends waits in all threads,
    with ClosedError.

    >>> ids = frazil.Snowflake("twitter", datacenter=1, worker=7)
    >>> ids.layout.decode(ids.next()).worker
    7
    """

    def __new__(cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Unpack[_Options]) -> Self: ...
    @classmethod
    def aopen(cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Unpack[_Options]) -> Coroutine[Any, Any, Snowflake]:
        """Opens a generator without blocking an event loop. The arguments are the constructor's.

        A number that a cancelled call has leased is released.

        >>> ids = await frazil.Snowflake.aopen("game", server=4711)
        """

    def next(self, *, timeout: _Timeout = None) -> int:
        """The next ID. Waits as the policies say, 5 s at most unless they say otherwise, and no longer than `timeout`.

        Raises ClockBackError and ExhaustedError as the policies say, LayoutExpiredError, BeforeEpochError,
        ClockNotSetError under a manual clock, ForkedError, NodeInUseError where another process has the number that is given without
        a store, ClosedError, and WouldBlockError in an event loop and after `timeout`;
        LeaseExhaustedError if the store was unreachable until the lease's bound.
        """

    def __reduce__(self) -> tuple[Any, tuple[type[Any], str, str | None]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __call__(self) -> int:
        """Returns the next ID, so that a generator can be a callable default."""

    def __next__(self) -> int:
        """Returns the next ID."""

    def __iter__(self) -> Self: ...
    def anext(self, *, timeout: _Timeout = None) -> Coroutine[Any, Any, int]:
        """The next ID, without blocking an event loop. A cancelled task waits no longer."""

    def batch(self, count: SupportsIndex, /, *, timeout: _Timeout = None) -> list[int]:
        """A batch of ascending IDs: all or nothing. Returns a list of 0 to 16,777,216 IDs. Raises as `next` does."""

    def abatch(self, count: SupportsIndex, /, *, timeout: _Timeout = None) -> Coroutine[Any, Any, list[int]]:
        """A batch of ascending IDs, without blocking an event loop. All or nothing."""

    def array(self, count: SupportsIndex, /, *, timeout: _Timeout = None) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]:
        """A new numpy array of ascending IDs, 0 to 16,777,216 of them: all or nothing. Raises as `next` does; ImportError without numpy."""

    def fill(self, buffer: _Memory, /, *, timeout: _Timeout = None) -> int:
        """Fills a buffer with ascending IDs. Makes no copy, and returns how many.

        The buffer is writable, C-contiguous, and holds int64 or uint64 in native order: an array('q'), a numpy array, a
        memoryview of them. No other thread may use it during the call. Raises as `next` does. The exception's
        `written` says how many IDs were written.

        >>> loot = array.array("q", bytes(8 * 1000))
        >>> ids.fill(loot)
        1000
        """

    def text(self, format: _Format, /) -> str:
        """The next ID as text of a fixed width. The text sorts like the numbers. In JSON an ID is `str(ids.next())`,
        without leading zeros.

        Raises as `next` does.
        """

    def credit(self) -> int:
        """The number of IDs that could be minted now with no stamp ahead of the clock. With `lag` it is the credit for
        a burst.
        """

    def set_time(self, time: datetime.datetime, /) -> None:
        """Sets the time of `clock=manual`. An earlier time is a rollback. Raises SpecError without `clock=manual`."""

    def observe(self, id: _Id, /) -> None:
        """Prevents IDs at or below this one from now on. Has the effect of `after=` at run time, to take over from
        another generator.

        The ID is an int, or its decimal text.

        Every call that begins later, in any thread, returns a larger ID. An ID below the next one changes nothing, except
        that a sequence number may be skipped. Raises OutOfRangeError for an ID further ahead of the clock than D of
        `rollback=ahead:D` or `exhausted=ahead:D`, IdInvalidError for one of another layout, LayoutExpiredError for one in its last tick.

        >>> ids.observe(theirs)
        >>> ids.next() > theirs
        True
        """

    def release_node(self, *, timeout: _Timeout = None) -> None:
        """Releases a leased node number; the next ID leases another. IDs continue to increase.

        Call it before a machine is cloned. Every clone then leases its own number. It waits for the store. Raises SpecError for a fixed number
        without a store, and LeaseExhaustedError if the store takes too long. Raises WouldBlockError in an event loop and after `timeout`.
        The number is then not used again, and the release is written to the store in the background.
        """

    def arelease_node(self, *, timeout: _Timeout = None) -> Coroutine[Any, Any, None]:
        """Releases a leased node number without blocking an event loop."""

    def close(self, *, timeout: _Timeout = None) -> None:
        """Closes the handle; the last one releases the node number. Every later call raises ClosedError. Closing twice
        is harmless, and dropping closes.

        Calls that wait, and long batches, end with ClosedError. The last handle of a leased number releases it, and waits up to 5 s for the
        store; on the thread of a running event loop 2 ms. With `timeout` it waits no longer than that, and raises WouldBlockError if the
        write has not finished by then. The write continues in the background.
        """

    def aclose(self, *, timeout: _Timeout = None) -> Coroutine[Any, Any, None]:
        """Closes the handle without blocking an event loop."""

    def __enter__(self) -> Self: ...
    def __exit__(self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, Self]: ...
    def __aexit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> Coroutine[Any, Any, None]: ...
    @property
    def layout(self) -> Layout:
        """The layout."""

    @property
    def node(self) -> int | None:
        """The node number: all node fields side by side. None in a forked child before its first ID."""

    @property
    def fields(self) -> dict[str, int]:
        """The value of each node field, from the most significant. Empty in a forked child before its first ID."""

    def stats(self) -> Stats:
        """The counts of this process, over all handles. `issued` is exact when no call is in progress. Asks no store."""

    @property
    def lease(self) -> Lease | None:
        """The leased node number and the state of its lease. None for a fixed number, and in a forked child before its
        first ID.
        """

    @property
    def spec(self) -> str:
        """The canonical spec line."""

@disjoint_base
class Numbers:
    """The base class of Segment, Tickets and Buffered, whose numbers a thread may prefetch.

    A number is handed out once in a process, over all threads; a forked child has its own numbers. Releases the GIL while waiting. On the
    thread of a running event loop no call waits for more than 2 ms. It raises WouldBlockError, and the async forms wait without blocking the
    loop. `timeout` and the other ends of a wait work as in `Snowflake`. `store` and `offset` also accept a list.
    """

    @classmethod
    def aopen(cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Any) -> Coroutine[Any, Any, Self]:
        """Opens a segment, tickets or a ring without blocking an event loop. The arguments are the constructor's.

        >>> orders = await frazil.Segment.aopen("orders", store="local")
        """

    def next(self, *, timeout: _Timeout = None) -> int:
        """The next number. If none is prefetched the call waits, up to `wait` (a ring: `empty`), and no longer than `timeout`.

        Segments and tickets raise SegmentExhaustedError when none came in time, or none are left below 2^63;
        TagMissingError, SegmentMismatchError and the Store*Errors. A ring raises what its generator does. ClosedError; WouldBlockError in an
        event loop and after `timeout`.
        """

    def __reduce__(self) -> tuple[Any, tuple[type[Any], str, str | None]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __call__(self) -> int:
        """Returns the next number, so that the object can be a callable default."""

    def __next__(self) -> int:
        """Returns the next number."""

    def __iter__(self) -> Self: ...
    def anext(self, *, timeout: _Timeout = None) -> Coroutine[Any, Any, int]:
        """The next number, without blocking an event loop. A cancelled task waits no longer."""

    def batch(self, count: SupportsIndex, /, *, timeout: _Timeout = None) -> list[int]:
        """A batch of numbers: all or nothing. Returns a list of 0 to 16,777,216 numbers. Raises as `next` does; the
        numbers taken before the error are a gap.
        """

    def abatch(self, count: SupportsIndex, /, *, timeout: _Timeout = None) -> Coroutine[Any, Any, list[int]]:
        """A batch of numbers, without blocking an event loop. All or nothing."""

    def array(self, count: SupportsIndex, /, *, timeout: _Timeout = None) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]:
        """A new numpy array of numbers, 0 to 16,777,216 of them: all or nothing. As `batch`; ImportError without numpy."""

    def fill(self, buffer: _Memory, /, *, timeout: _Timeout = None) -> int:
        """Fills a buffer with numbers. Makes no copy, and returns how many.

        The buffer is one that `Snowflake.fill` accepts. Raises as `next` does; the exception's `written` says how many were written.
        """

    def discard(self, *, timeout: _Timeout = None) -> None:
        """Drops the prefetched numbers, before a machine is cloned. The clones then do not hand them out twice.

        It also releases a ring's leased node number, which waits for the store. The next call fetches new numbers. Raises
        ClosedError, and for a ring with a lease also as `Snowflake.release_node`.
        """

    def adiscard(self, *, timeout: _Timeout = None) -> Coroutine[Any, Any, None]:
        """Drops the prefetched numbers without blocking an event loop."""

    def close(self, *, timeout: _Timeout = None) -> None:
        """Closes the numbers; prefetched ones are lost. Every later use raises ClosedError, also `prepared` and `last_error`.

        Closing twice is harmless, and dropping closes. Calls that wait end with ClosedError. A ring's leased node number is released as by
        `Snowflake.close`.
        """

    def aclose(self, *, timeout: _Timeout = None) -> Coroutine[Any, Any, None]:
        """Runs `close` without blocking an event loop."""

    def __enter__(self) -> Self: ...
    def __exit__(self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, Self]: ...
    def __aexit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> Coroutine[Any, Any, None]: ...
    def stats(self) -> Stats:
        """The counts of this process, over all handles. `issued` is exact when no call is in progress. Asks no store."""

    @property
    def prepared(self) -> int:
        """The number of prefetched numbers, without those of the current range."""

    @property
    def last_error(self) -> FrazilError | None:
        """The last failure of the prefetch. For example, one store of several is unreachable. None if there is none."""

    @property
    def spec(self) -> str:
        """The canonical spec line. It shows no secret."""

@final
class Segment(Numbers):
    """Increasing 63-bit numbers from ranges that a store hands out: Leaf-segment, Tinyid, CosId's SegmentChain.

    The spec is the tag, and `store` (several: each has its own offset, and one that is alive is enough), `namespace`,
    `step` (1000), `start` (1), `increment` and `offset`, `wait` (5s), `table` (`leaf`, `tinyid`: that system's own table). Opening waits for the first range. Numbers increase within an object, over all threads;
    among objects and processes, and with several stores, they do not. Fetched numbers that are not used at the end are a gap.

    Raises SpecError, UnknownKeyError and OutOfRangeError for the arguments, and the errors of `next`.

    >>> orders = frazil.Segment("orders", store="local", step=100)
    >>> orders.next(), orders(), next(orders)
    (1, 2, 3)
    """

    def __new__(cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Unpack[_SegmentOptions]) -> Self: ...
    @classmethod
    def aopen(  # type: ignore[override]
        cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Unpack[_SegmentOptions]
    ) -> Coroutine[Any, Any, Self]:
        """Opens without blocking an event loop; the arguments are the constructor's."""

@final
class Tickets(Numbers):
    """Single numbers from two stores or more in turn: Flickr's ticket servers. One store that is alive is enough.

    No number is prefetched, so every number costs a round trip to a store. The spec is that of Segment, without `step`,
    `increment` and `offset`. A store is asked only when a number is requested.

    >>> photos = frazil.Tickets("photos", store=["mysql://a/tickets", "mysql://b/tickets"])
    """

    def __new__(cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Unpack[_TicketsOptions]) -> Self: ...
    @classmethod
    def aopen(  # type: ignore[override]
        cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Unpack[_TicketsOptions]
    ) -> Coroutine[Any, Any, Self]:
        """Opens without blocking an event loop; the arguments are the constructor's."""

@final
class Buffered(Numbers):
    """A ring of IDs that a thread prepares: UidGenerator's cached mode for any generator.

    The spec is the generator's, and `size` (65536), `refill` (50 percent), `empty` (`wait`, which is `wait:5s`; `error`). Opening fills the
    ring. IDs are stamped when they are prepared, not when they are taken; the ring is dropped and refilled in a forked child and when
    the clock has gone back.

    Raises SpecError and OutOfRangeError for the arguments, and the errors of Snowflake.

    >>> ids = frazil.Buffered("standard", node=7, size=8192)
    >>> ids.layout.decode(ids.next()).node
    7
    """

    def __new__(cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Unpack[_RingOptions]) -> Self: ...
    @classmethod
    def aopen(  # type: ignore[override]
        cls, spec: str | None = None, /, *, timeout: _Timeout = None, **options: Unpack[_RingOptions]
    ) -> Coroutine[Any, Any, Self]:
        """Opens without blocking an event loop; the arguments are the constructor's."""

    @property
    def layout(self) -> Layout:
        """The layout of a ring's IDs."""

@final
class Lease:
    """A leased node number and its state when `ids.lease` was read. Immutable.

    >>> ids = frazil.Snowflake("standard", store="file:/var/lib/shop")
    >>> ids.lease.node == ids.node, ids.lease.healthy
    (True, True)
    """

    @property
    def node(self) -> int:
        """The node number: all node fields side by side."""

    @property
    def bound(self) -> datetime.datetime | None:
        """The last instant whose IDs the lease covers, in UTC; None for a disposable number, which has no end."""

    @property
    def store(self) -> str:
        """The store, without its credentials."""

    @property
    def namespace(self) -> str:
        """The pool of numbers in the store."""

    @property
    def healthy(self) -> bool:
        """True if the last attempt to reach the store succeeded."""

    @property
    def last_error(self) -> FrazilError | None:
        """The error of that attempt if it failed."""

    @property
    def left(self) -> int | None:
        """The disposable numbers that were left when this one was taken."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class Stats:
    """The counts of a generator or a segment in this process. Immutable. A value that does not apply is None.

    >>> ids = frazil.Snowflake("standard", node=20)
    >>> _ = ids.batch(1000)
    >>> ids.stats().issued >= 1000, ids.stats().lease_node
    (True, None)
    """

    @property
    def kind(self) -> Literal["snowflake", "segment", "tickets", "buffered"]:
        """The kind of object that is counted."""

    @property
    def spec(self) -> str:
        """The canonical spec line of the first open, without secrets."""

    @property
    def issued(self) -> int:
        """IDs issued, or numbers handed out."""

    @property
    def waits(self) -> int:
        """Calls that waited for the clock, for a lease, or for numbers of a store."""

    @property
    def wait_seconds(self) -> float:
        """The total time that calls waited."""

    @property
    def exhausted(self) -> int:
        """Calls that found the sequence used up, or no number in time."""

    @property
    def refused(self) -> int:
        """Calls that ended with an error instead of IDs."""

    @property
    def rollbacks(self) -> int:
        """The times that the clock went back by a tick or more."""

    @property
    def largest_rollback_seconds(self) -> float:
        """The largest step back of the clock."""

    @property
    def drift_seconds(self) -> float:
        """The time by which the last ID's stamp was ahead of the clock."""

    @property
    def borrowed_ticks(self) -> int:
        """Ticks that were entered before the clock showed them."""

    @property
    def layout_seconds_left(self) -> float | None:
        """The time until the layout ends."""

    @property
    def lease_node(self) -> int | None:
        """The leased node number."""

    @property
    def lease_bound(self) -> float | None:
        """The lease's bound, in seconds since 1970."""

    @property
    def lease_seconds_left(self) -> float | None:
        """The time for which the lease still covers IDs without its store."""

    @property
    def lease_renewals(self) -> int | None:
        """The times that the lease was extended."""

    @property
    def lease_failures(self) -> int | None:
        """Calls of the store for the lease that failed."""

    @property
    def lease_failing_seconds(self) -> float | None:
        """The time for which store calls for the lease have been failing; 0 while they succeed."""

    @property
    def leases_lost(self) -> int | None:
        """Node numbers that another process had taken."""

    @property
    def range_left(self) -> int | None:
        """Numbers left in the range being used."""

    @property
    def range_ready(self) -> int | None:
        """Numbers in the prefetched ranges after it."""

    @property
    def range_step(self) -> int | None:
        """The size of the next range to fetch."""

    @property
    def hungry(self) -> int | None:
        """Calls that found no prefetched number."""

    def as_dict(self) -> dict[str, int | float]:
        """Returns all values that apply, by the names of the attributes, without `kind` and `spec`."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Metric:
    """A row of the table from which exporters take names. It is the same in every language."""

    @property
    def field(self) -> str:
        """The attribute of `Stats`."""

    @property
    def prometheus(self) -> str:
        """The name in Prometheus."""

    @property
    def opentelemetry(self) -> str:
        """The name in OpenTelemetry."""

    @property
    def unit(self) -> str:
        """The unit there."""

    @property
    def is_counter(self) -> bool:
        """True if the value only grows; otherwise it is a gauge."""

    @property
    def help(self) -> str:
        """The meaning of the metric."""

@final
class Layout:
    """The split of the 63 bits of an ID, with the length of a tick and the epoch. Immutable.

    Its text is a preset's name, or lists the fields from the most significant. Raises LayoutInvalidError for a
    layout that cannot exist, and says why.

    >>> layout = frazil.Layout("time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01")
    >>> layout.nodes, layout.field_bits
    (1024, {'business': 4, 'machine': 6})
    """

    def __new__(cls, text: str, /) -> Self: ...
    @staticmethod
    def of(spec: str | None = None, /, **options: Unpack[_Options]) -> Layout:
        """Returns the layout of the generator that a spec line and options describe, as for `Snowflake`.

        Opens nothing, and asks no store. Raises the constructor's errors for the spec itself, such as SpecError and NodeMissingError.

        >>> frazil.Layout.of("twitter store=local").nodes
        1024
        """

    def decode(self, id: _Id, /) -> Parts:
        """Decodes an ID. The ID is an int, or its decimal text. Raises IdInvalidError when it has more bits than the
        layout.

        >>> frazil.Layout("twitter").decode(1541815603606036480).worker
        26
        """

    def decode_many(
        self,
        ids: _Memory | Iterable[_Id],
        /,
        *,
        fields: Iterable[str] | None = None,
        out: dict[str, Any] | None = None,
    ) -> dict[str, numpy.ndarray[tuple[int], numpy.dtype[Any]]]:
        """Decodes many IDs into columns: one for each wanted part, by its name. The columns are numpy's arrays, named as in
        `Parts._asdict()`.

        The IDs are an array of int64 or uint64, or an iterable of values that `decode` accepts. `time` is datetime64[ms] in UTC, the others are int64.
        `fields` names the wanted columns. `out` is a dict of arrays that are written and returned, such as an earlier result of as many IDs.
        Without `fields`, its names are the wanted columns. After an error its arrays hold no particular values.

        Raises WrongTypeError for an array of floats, for objects that hold no IDs, and for arrays of `out` of another type or length, or
        that share memory. Missing values make a column an array of floats, so leave them out. Raises IdInvalidError as `decode`, with the
        first bad row and how many there are, UnknownKeyError for a name that is no column, and ImportError without numpy.

        >>> frazil.Layout("twitter").decode_many(["1541815603606036480"])["worker"]
        array([26])
        """

    def compose(self, time: datetime.datetime, /, *, sequence: SupportsIndex, **fields: SupportsIndex) -> int:
        """Composes an ID of an instant, a sequence and every node field. Fields are passed by name.

        Raises OutOfRangeError when a value does not fit its field (nothing is masked), UnknownKeyError for a field
        that the layout does not have, NodeMissingError for a missing one, BeforeEpochError and LayoutExpiredError
        for an instant outside the layout.
        """

    def min_id(self, time: datetime.datetime, /) -> int:
        """The smallest ID of the tick at an instant. In a query: `id >= min_id(t)`."""

    def max_id(self, time: datetime.datetime, /) -> int:
        """The largest ID of the tick that holds an instant: `id <= max_id(t)` in a query."""

    @property
    def text(self) -> str:
        """The canonical text, which parses to the same layout. It is also `str(layout)`."""

    @property
    def time_bits(self) -> int:
        """The width of the time field."""

    @property
    def tick_ms(self) -> int:
        """The length of a tick in milliseconds, 1 to 3,600,000."""

    @property
    def epoch(self) -> datetime.datetime:
        """The instant at which the time field is 0."""

    @property
    def field_bits(self) -> dict[str, int]:
        """The node fields and their widths in bits, from the most significant."""

    @property
    def sequence_bits(self) -> int:
        """The width of the sequence, the counter within a tick."""

    @property
    def nodes(self) -> int:
        """The number of node numbers."""

    @property
    def ids_per_second(self) -> float:
        """The IDs that one generator can mint in a second, sustained."""

    @property
    def expires_at(self) -> datetime.datetime | None:
        """The first instant that cannot be stamped; None when that is after the year 9999."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Layout], tuple[str]]: ...

@final
class Parts:
    """The parts of an ID. Each node field is an attribute by its name: `parts.worker`. Immutable.

    Parts of one layout sort like their IDs. Parts of different layouts are never equal, and sorting them raises TypeError.

    >>> match frazil.Layout("twitter").decode(1541815603606036480):
    ...     case frazil.Parts(time, worker=26):
    ...         print(time)
    2022-06-28 16:07:40.105000+00:00
    """

    __match_args__: Final = ("time", "fields", "sequence", "tick")

    @property
    def id(self) -> int:
        """The ID that was taken apart."""

    @property
    def time(self) -> datetime.datetime:
        """The instant at which the ID's tick starts, in UTC."""

    @property
    def tick(self) -> int:
        """The raw time field: ticks since the layout's epoch."""

    @property
    def sequence(self) -> int:
        """The counter within the tick."""

    @property
    def node(self) -> int:
        """The node number: all node fields side by side. If one of several fields is named `node`, the value of that
        field.
        """

    @property
    def fields(self) -> dict[str, int]:
        """The node fields by name, from the most significant; also of one that shares its name with a property."""

    @property
    def looks_rounded(self) -> bool:
        """True if a JavaScript number may have rounded the ID. It is a hint: one ID in 256 looks so by chance."""

    def _asdict(self) -> dict[str, Any]:
        """The time, each node field, the sequence and the tick by name: a row of a table."""

    def __getattr__(self, name: str, /) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Parts, /) -> bool: ...
    def __le__(self, other: Parts, /) -> bool: ...
    def __gt__(self, other: Parts, /) -> bool: ...
    def __ge__(self, other: Parts, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, tuple[int]]: ...

class FrazilError(Exception):
    """Any refusal of frazil: the base of a class for each kind.

    Most kinds are also one of Python's own exceptions: ValueError for a bad value, TypeError for a wrong type, TimeoutError for a wait that
    is over, ConnectionError, PermissionError and OSError for a store, RuntimeError for a handle that cannot be used any more. A bad ID in a
    Pydantic validator is therefore a validation error.
    """

    code: int
    """The kind's stable number, for example 203."""
    name: str
    """The kind's stable name, for example "CLOCK_BACK"."""
    retry_after: float | None
    """Seconds until a retry can succeed, if known: WouldBlockError, ExhaustedError, ClockBackError."""
    written: int
    """The number of IDs that `fill` had written when it failed."""

class SpecError(FrazilError, ValueError):
    """101 SPEC: The spec line, or a value in it, cannot be understood."""

class UnknownKeyError(FrazilError, ValueError):
    """102 UNKNOWN_KEY: The spec or the call names a key or a field that does not exist here."""

class OutOfRangeError(FrazilError, ValueError):
    """103 OUT_OF_RANGE: A value lies outside the range that its argument allows."""

class LayoutInvalidError(FrazilError, ValueError):
    """104 LAYOUT_INVALID: The layout cannot exist: too many bits, a bad name, a bad tick."""

class IdInvalidError(FrazilError, ValueError):
    """105 ID_INVALID: The text or number is not an ID of this layout."""

class WrongTypeError(FrazilError, TypeError):
    """106 WRONG_TYPE: An argument has the wrong type, or is null."""

class ClosedError(FrazilError, RuntimeError):
    """107 CLOSED: The handle has been closed."""

class LayoutExpiredError(FrazilError, ValueError):
    """201 LAYOUT_EXPIRED: The instant lies past the last one that the layout's time field can hold."""

class BeforeEpochError(FrazilError, ValueError):
    """202 BEFORE_EPOCH: The instant lies before the layout's epoch."""

class ClockBackError(FrazilError):
    """203 CLOCK_BACK: The clock went back, by more than the rollback policy allows."""

class ExhaustedError(FrazilError):
    """204 EXHAUSTED: The tick's sequence is used up, and the exhausted policy allows no more."""

class WouldBlockError(FrazilError, TimeoutError):
    """205 WOULD_BLOCK: The call would wait longer than it may here; the error says for how long."""

class ClockNotSetError(FrazilError, RuntimeError):
    """206 CLOCK_NOT_SET: The manual clock has not been given a time yet."""

class ClockSkewError(FrazilError):
    """207 CLOCK_SKEW: This machine's clock is too far from the store's."""

class NodeMissingError(FrazilError, ValueError):
    """301 NODE_MISSING: No node number was given, and no store to lease one from."""

class NodeInUseError(FrazilError):
    """302 NODE_IN_USE: The given node number is held by another generator."""

class NoFreeNodeError(FrazilError):
    """303 NO_FREE_NODE: Every node number of the store is leased."""

class LeaseExhaustedError(FrazilError):
    """304 LEASE_EXHAUSTED: The lease's bound is reached and the store could not extend it."""

class ForkedError(FrazilError, RuntimeError):
    """305 FORKED: The process forked, and the parent owns this generator's node number."""

class ConflictError(FrazilError, RuntimeError):
    """306 CONFLICT: The node number is open in this process with other policies."""

class CopiedError(FrazilError, RuntimeError):
    """307 COPIED: The process was copied while it ran, and another copy may issue the same."""

class StoreUnreachableError(FrazilError, ConnectionError):
    """401 STORE_UNREACHABLE: The store does not answer."""

class StoreAuthError(FrazilError, PermissionError):
    """402 STORE_AUTH: The store refuses the credentials."""

class StoreReadonlyError(FrazilError, OSError):
    """403 STORE_READONLY: The store does not take writes."""

class StoreCorruptError(FrazilError, OSError):
    """404 STORE_CORRUPT: A record of the store cannot be read."""

class StoreChangedError(FrazilError, OSError):
    """405 STORE_CHANGED: The store is not the one that held the leases: wiped, restored or replaced."""

class StoreUnsuitableError(FrazilError, OSError):
    """406 STORE_UNSUITABLE: The store cannot keep what a lease needs."""

class LayoutMismatchError(FrazilError, ValueError):
    """407 LAYOUT_MISMATCH: The namespace is used with another layout."""

class StoreNotBuiltError(FrazilError, NotImplementedError):
    """408 STORE_NOT_BUILT: This build has no client for the store."""

class TagMissingError(FrazilError, LookupError):
    """501 TAG_MISSING: The segment's tag does not exist in the store."""

class SegmentExhaustedError(FrazilError, TimeoutError):
    """502 SEGMENT_EXHAUSTED: The next range did not arrive in time."""

class SegmentMismatchError(FrazilError, ValueError):
    """503 SEGMENT_MISMATCH: The store's record of the tag has another increment or offset than the spec."""

class InternalError(FrazilError, RuntimeError):
    """901 INTERNAL: A defect of frazil: a panic that was caught at the border."""
