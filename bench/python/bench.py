"""The cost of an ID in Python: frazil, the floors of the language, and its peers, in one run.

Every number is the median of rounds that take turns, so that a slow second of the machine hits all cases alike.
"""

import array
import itertools
import json
import os
import statistics
import time
import timeit
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bson
import frazil
import frazil_bench_floor
import numpy
import snowflake
import uuid_utils

ROUNDS = 41
# Short rounds and many: fewer of them lose their turn on a busy machine.
CALLS = 20_000
BLOCK = 1000
# Nearly all of a ring, which is full again when its turn comes again.
BURST = 60_000
SERVICE_SECONDS = 2

# Room for a million IDs in a millisecond, so that the layout's cap does not hide the cost of a call.
WIDE = 'layout="time:41@1ms node:2 sequence:20 epoch:2025-01-01"'
# Room for a billion in one tick, which the manual clock begins before every round: bulk is faster than any clock's cap.
BULK = 'layout="time:31@1s node:2 sequence:30 epoch:2025-01-01" clock=manual detached=true'

INT_FLOOR = "C function: counter of the processor, atomic, int"
TEXT_FLOOR = "C function: counter of the processor, atomic, 19-character string"
TEXT_METHOD_FLOOR = 'C object: `ids.text("decimal")`, the method does the same'
STR_FLOOR = "`str(mint())` of the C function"
NEXT_FLOOR = "C object: `next(ids)`, the slot does the same"
CALL_FLOOR = "C object: `ids()`, the slot does the same"
UUID7, UUID4 = "uuid_utils `uuid7()`", "uuid_utils `uuid4()`"
LIST_FLOOR = f"C loop, a list of {BLOCK} ints: `array.tolist()`, per ID"
COPY_FLOOR = f"C loop, {BLOCK} int64 written: `numpy.copyto(a, b)`, per ID"
MINT = "`mint = ids.next; mint()`"


class Case:
    """An expression, compiled into its own loop, that makes `ids_per_call` IDs; `floor` names the case it is compared with."""

    def __init__(self, group, name, expression, ids_per_call=1, calls=CALLS, floor=INT_FLOOR, **names):
        self.group, self.name, self.ids_per_call, self.calls, self.floor = group, name, ids_per_call, calls, floor
        self.samples = []
        # Locals of the loop, as in a caller's function.
        setup = "\n".join(f"{local} = names['{local}']" for local in names)
        self.timer = timeit.Timer(expression, setup or "pass", globals={"names": names})

    def run(self):
        """Measures one round."""
        self.samples.append(self.timer.timeit(self.calls) * 1e9 / self.calls)

    def nanoseconds(self, empty):
        """The cost of an ID, less that of the loop around it."""
        return max(statistics.median(self.samples) - empty, 0) / self.ids_per_call

    def ratio(self, floor, empties):
        """The median of the rounds' ratios to the floor: what slows a whole round cancels out."""
        rounds = zip(self.samples, floor.samples, empties, strict=True)
        ratios = [(own - empty) / self.ids_per_call / max((other - empty) / floor.ids_per_call, 0.001) for own, other, empty in rounds]
        return statistics.median(ratios)


def cases(bulk):
    """Everything that is compared."""
    ids = frazil.Snowflake(WIDE, node=1)
    standard = frazil.Snowflake("standard", node=1)
    segment = frazil.Segment("bench", store="memory", step=1_000_000)
    ring, standard_ring = frazil.Buffered(WIDE, node=2), frazil.Buffered("standard", node=2)
    peer = snowflake.SnowflakeGenerator(1)
    few = CALLS // 10
    blocks = CALLS // BLOCK
    stamps = array.array("q", range(2**60, 2**60 + BLOCK))
    copied = {"copyto": numpy.copyto, "a": numpy.zeros(BLOCK, numpy.int64), "b": numpy.array(stamps)}
    return [
        Case("floor", "an empty loop", "pass"),
        Case("floor", "C iterator: `next(itertools.count(2**60))`", "next(counter)", counter=itertools.count(2**60)),
        Case("floor", "C function: clock, int: `time.time_ns()`", "now()", now=time.time_ns),
        Case("floor", INT_FLOOR, "mint()", mint=frazil_bench_floor.mint),
        Case("floor", "C function: `clock_gettime`, atomic, int", "mint()", mint=frazil_bench_floor.mint_by_clock),
        Case("floor", NEXT_FLOOR, "next(ids)", ids=frazil_bench_floor.Ids()),
        Case("floor", CALL_FLOOR, "ids()", ids=frazil_bench_floor.Ids()),
        Case("floor", TEXT_FLOOR, "text()", floor=TEXT_FLOOR, text=frazil_bench_floor.text),
        Case("floor", TEXT_METHOD_FLOOR, 'ids.text("decimal")', ids=frazil_bench_floor.Ids()),
        Case("floor", STR_FLOOR, "str(mint())", floor=TEXT_FLOOR, mint=frazil_bench_floor.mint, str=str),
        Case("floor", LIST_FLOOR, "tolist()", BLOCK, blocks, LIST_FLOOR, tolist=stamps.tolist),
        Case("floor", COPY_FLOOR, "copyto(a, b)", BLOCK, few, COPY_FLOOR, **copied),
        Case("frazil", MINT, "mint()", mint=ids.next),
        Case("frazil", "`ids.next()`", "ids.next()", ids=ids),
        Case("frazil", "`ids()`", "ids()", floor=CALL_FLOOR, ids=ids),
        Case("frazil", "`next(ids)`", "next(ids)", floor=NEXT_FLOOR, ids=ids),
        Case("frazil", "`str(ids.next())`", "str(ids.next())", floor=STR_FLOOR, ids=ids, str=str),
        Case("frazil", '`ids.text("decimal")`', 'ids.text("decimal")', floor=TEXT_METHOD_FLOOR, ids=ids),
        Case("frazil", '`ids.text("base62")`', 'ids.text("base62")', floor=TEXT_METHOD_FLOOR, ids=ids),
        Case("frazil", f"`ids.batch({BLOCK})`, per ID", "ids.batch(n)", BLOCK, blocks, LIST_FLOOR, ids=bulk, n=BLOCK),
        Case("frazil", f"`ids.fill(array)` of {BLOCK}, per ID", "ids.fill(a)", BLOCK, few, COPY_FLOOR, ids=bulk, a=stamps[:]),
        Case("frazil", f"`ids.fill(numpy)` of {BLOCK}, per ID", "ids.fill(a)", BLOCK, few, COPY_FLOOR, ids=bulk, a=numpy.array(stamps)),
        Case("frazil", "`segment.next()`", "segment.next()", segment=segment),
        Case("frazil", "`ring.next()` of a `Buffered`", "ring.next()", calls=BURST, ring=ring),
        Case("frazil", f"`ids.next()`, `standard`, {BURST:,} in a row", "ids.next()", calls=BURST, ids=standard),
        Case("frazil", f"`ring.next()`, `standard`, {BURST:,} in a row", "ring.next()", calls=BURST, ring=standard_ring),
        Case("frazil", "`frazil.uuid.uuid7()`", "uuid7()", calls=few, floor=UUID7, uuid7=frazil.uuid.uuid7),
        Case("frazil", "`frazil.uuid.uuid4()`", "uuid4()", calls=few, floor=UUID4, uuid4=frazil.uuid.uuid4),
        Case("frazil", "`frazil.objectid.ObjectId()`", "ObjectId()", calls=few, floor=UUID4, ObjectId=frazil.objectid.ObjectId),
        Case("peer", UUID7, "uuid7()", uuid7=uuid_utils.uuid7),
        Case("peer", UUID4, "uuid4()", uuid4=uuid_utils.uuid4),
        Case("peer", "snowflake-id `next(generator)`", "next(peer)", calls=few, peer=peer),
        Case("peer", "bson `ObjectId()`", "ObjectId()", calls=few, ObjectId=bson.ObjectId),
        Case("peer", "`uuid.uuid4()`", "uuid4()", calls=few, uuid4=uuid.uuid4),
    ]


def compare():
    """Prints the table of costs, and returns the costs."""
    bulk = frazil.Snowflake(BULK, node=1)
    now = datetime.now(UTC)
    compared = cases(bulk)
    for _ in range(ROUNDS):
        for case in compared:
            # Each round of each case begins a new tick.
            now += timedelta(seconds=1)
            bulk.set_time(now)
            case.run()

    empties = compared[0].samples
    empty = statistics.median(empties)
    named = {case.name: case for case in compared}
    print(f"## Python: ns per ID, less the loop; medians of {ROUNDS} rounds that take turns\n")
    print("| | | ns | of its floor | of `mint()` |\n|---|---|---:|---:|---:|")
    records = [{"case": "floor: an empty loop", "ns": round(empty, 3), "floor": None}]
    print(f"| floor | an empty loop | {empty:.2f} | | |")
    for case in compared[1:]:
        cost, floor = case.nanoseconds(empty), named[case.floor]
        of_floor, of_mint = case.ratio(floor, empties), case.ratio(named[MINT], empties)
        print(f"| {case.group} | {case.name} | {cost:.2f} | {of_floor:.2f} | {of_mint:.2f} |")
        records.append({"case": f"{case.group}: {case.name}", "ns": round(cost, 3), "floor": round(floor.nanoseconds(empty), 3)})
    print(
        "\nThe floor of a single ID: a C function that reads the processor's counter, adds to an atomic, shifts, and makes the int or the text;"
        " of `next(ids)`, `ids()` and `ids.text(...)`, the same in an object's slot or method, as CPython calls it. The floor of a list is"
        " `tolist()`, that of a block is `copyto()`; neither makes IDs. A UUID and an ObjectId are compared with uuid_utils, whose UUIDs have a"
        " class defined by that library, with random bits from a generator in the process."
    )
    return records


def saturate():
    """Prints the share of the default preset's cap that a loop around `next()` gets, and its share of a core."""
    ids = frazil.Snowflake("standard", node=1)
    cap, count = 4_096_000, 0
    start, cpu = time.perf_counter(), time.process_time()
    for _ in itertools.repeat(None, SERVICE_SECONDS * cap // 1000):
        for _ in range(1000):
            ids.next()
        count += 1000
    seconds, busy = time.perf_counter() - start, time.process_time() - cpu
    own = min(timeit.repeat("ids.next()", number=CALLS, repeat=ROUNDS, globals={"ids": frazil.Snowflake(WIDE, node=3)})) / CALLS
    print(f"\n## Python: saturated, preset `standard`, one thread, {seconds:.1f} s\n")
    print("| | |\n|---|---:|")
    print(f"| of the cap, {cap:,} a second | {count / seconds / cap:.2%} |")
    print(f"| of a core | {busy / seconds:.1%} |")
    print(f"| of a core, the calls' own time | {count * own / seconds:.1%} |")


def serve():
    """Prints what one process sustains on the default preset."""
    ids = frazil.Snowflake("standard", node=1)
    count, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < SERVICE_SECONDS:
        for _ in range(1000):
            ids.next()
        count += 1000
    rate = count / seconds

    latencies, now = array.array("q"), time.perf_counter_ns
    end = now() + SERVICE_SECONDS * 1_000_000_000
    before = now()
    while before < end:
        ids.next()
        after = now()
        latencies.append(after - before)
        before = now()
    ordered = sorted(latencies)
    quantiles = {f"p{share * 100:g}": ordered[int(len(ordered) * share)] for share in (0.5, 0.99, 0.999)}
    within = sum(latency <= 2_000_000 for latency in ordered) / len(ordered)

    print(f"\n## Python: the service level, preset `standard`, one thread, {SERVICE_SECONDS} s\n")
    print("| | |\n|---|---:|")
    print(f"| IDs per second, sustained (asked: 10,000) | {rate:,.0f} |")
    for name, latency in {**quantiles, "max": ordered[-1]}.items():
        print(f"| latency of `ids.next()`, {name} | {latency / 1000:,.2f} us |")
    print(f"| answers within 2 ms (asked: 99.9 %) | {within:.4%} |")
    print(f"| | {'met' if rate >= 10_000 and within >= 0.999 else 'NOT MET'} |")


if __name__ == "__main__":
    costs = compare()
    if place := os.environ.get("FRAZIL_BENCH_JSON"):
        Path(place).write_text(json.dumps(costs, indent=2) + "\n", encoding="utf-8")
    serve()
    saturate()
