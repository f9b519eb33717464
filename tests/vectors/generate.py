#!/usr/bin/env python3
"""Writes texts.json, layouts.json, replays.json and takeover.json, computed independently of the Rust core.

python3 tests/vectors/generate.py          writes them
python3 tests/vectors/generate.py --check  fails if a committed file differs
"""

import datetime
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
TOP = 2**63 - 1
LAST_MS = 253402300799999  # 9999-12-31T23:59:59.999Z, where dates end

# --- texts -----------------------------------------------------------------------------------

ALPHABETS = {
    "decimal": ("0123456789", 19),
    "base62": ("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11),
    "base32": ("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13),
    "hex": ("0123456789abcdef", 16),
}


def product(a, b):
    """Multiplies in GF(32): polynomials over GF(2), modulo x^5 + x^2 + 1."""
    product = 0
    for bit in range(5):
        product ^= (a << bit) * (b >> bit & 1)
    for bit in range(9, 4, -1):
        if product >> bit & 1:
            product ^= 0b100101 << (bit - 5)
    return product


def text(number, form):
    if form == "check":
        digits = text(number, "base32")
        alphabet, check, power = ALPHABETS["base32"][0], 0, 1
        for digit in reversed(digits):
            power = product(power, 2)
            check ^= product(power, alphabet.index(digit))
        return digits + alphabet[check]
    alphabet, width = ALPHABETS[form]
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, len(alphabet))
        digits = alphabet[digit] + digits
    return digits


def texts():
    known = json.loads((HERE / "known_ids.json").read_text())["vectors"]
    ids = [0, 1, 9, 61, 62, 4095, 2**32, 2**53, 2**53 + 1, 10**18, TOP - 1, TOP] + [int(v["id"]) for v in known]
    invalid = [
        ("decimal", ""),
        ("decimal", "-1"),
        ("decimal", "+1"),
        ("decimal", "01"),
        ("decimal", "1 "),
        ("decimal", " 1"),
        ("decimal", "1.0"),
        ("decimal", "1e3"),
        ("decimal", "0x1f"),
        ("decimal", "１２"),
        ("decimal", str(TOP + 1)),
        ("decimal", "9999999999999999999"),
        ("decimal", "0" * 20),
        ("decimal", "1" * 1000),
        ("base62", ""),
        ("base62", "1"),
        ("base62", "0" * 10),
        ("base62", "0" * 12),
        ("base62", "AzL8n0Y58m8"),
        ("base62", "zzzzzzzzzzz"),
        ("base62", "0000000000-"),
        ("base62", "0000000000é"),
        ("base32", ""),
        ("base32", "0" * 12),
        ("base32", "0" * 14),
        ("base32", "8000000000000"),
        ("base32", "ZZZZZZZZZZZZZ"),
        ("base32", "000000000000U"),
        ("hex", ""),
        ("hex", "0" * 15),
        ("hex", "0" * 17),
        ("hex", "8000000000000000"),
        ("hex", "ffffffffffffffff"),
        ("hex", "000000000000000g"),
    ]
    valid = [{"id": str(n)} | {form: text(n, form) for form in [*ALPHABETS, "check"]} for n in sorted(set(ids))]
    id, good = 1541815603606036480, text(1541815603606036480, "check")
    assert good == "1ASD13XH1F800K"
    spelled = [
        ("check", "", "1asd13xh1f800k"),
        ("check", "", "IASDl3XHLF8OoK"),
        ("check", "", " 1ASD-13XH-1F800-K "),
        ("check", "order_", "order_1ASD13XH1F800K"),
        ("check", "order_", "ORDER_1asd 13xh 1f80 0k"),
        ("check", "préfix:", "PRéFIX:1ASD13XH1F800K"),
        ("check", "line_item_", "line_item_1ASD13XH1F800K"),
        ("base32", "o-", "O-1ASD13XH1F800"),
        ("decimal", "user_", f"user_{id}"),
    ]
    changed = "it was changed: copy it again from its source"
    refused = [
        ("check", "", "2ASD13XH1F800K", changed),
        ("check", "", "1ASD13XH1F800J", changed),
        ("check", "", "1ASD13HX1F800K", changed),
        ("check", "", "1ASD13XH1F80K0", changed),
        ("check", "", "Z" * 14, changed),
        ("check", "", text(2**63, "check"), "it is above 9223372036854775807"),
        ("check", "", "", "it has 0 characters and ends at position 0; allowed: 14 characters"),
        ("check", "", "1ASD-13XH-1F800", "it has 13 characters and ends at position 15; allowed: 14 characters"),
        ("check", "", "1ASD-13XH-1F800-K-7", "it has 15 characters and ends at position 19; allowed: 14 characters"),
        ("check", "", "1" * 40, "it has 40 characters and ends at position 40; allowed: 14 characters"),
        ("check", "", "1ASD13XU1F800K", "position 7 is not a digit of it"),
        ("check", "", "1ASD13XH1F80*K", "position 12 is not a digit of it"),
        ("check", "", "１ASD13XH1F800K", "position 0 is not a digit of it"),
        ("check", "", "1ASD13XH1F8٠0K", "position 11 is not a digit of it"),
        ("check", "", "1ASD13XH–1F800K", "position 8 is not a digit of it"),
        ("check", "", "1ASD13XH\t1F800K", "position 8 is not a digit of it"),
        ("check", "", "user_1ASD13XH1F800K", "'u' at position 0 is not a digit of it"),
        ("check", "order_", "user_1ASD13XH1F800K", 'it needs the prefix "order_" at position 0'),
        ("check", "order_", "orders_1ASD13XH1F800K", 'it needs the prefix "order_" at position 0'),
        ("check", "order_", "ord", 'it needs the prefix "order_" at position 0'),
        ("check", "order_", "1ASD13XH1F800K", 'it needs the prefix "order_" at position 0'),
        ("check", "order_", "order_order_1ASD13XH1F800K", "'_' at position 11 is not a digit of it"),
        ("check", "order_", "order_user_1ASD13XH1F800K", "'u' at position 6 is not a digit of it"),
        ("check", "order_", "order_1ASD13XU1F800K", "position 13 is not a digit of it"),
        ("check", "order_", "order_1ASD13XH1F800", "it has 13 characters and ends at position 19; allowed: 14 characters"),
        ("check", "order_", "order_2ASD13XH1F800K", changed),
        ("check", "é_", "e_1ASD13XH1F800K", 'it needs the prefix "é_" at position 0'),
        ("base32", "order_", "order_1ASD13XH1F80", "it has 12 characters and ends at position 18; allowed: 13 characters"),
        ("hex", "0x", "0X1565a11f6217a00g", "position 17 is not a digit of it"),
        ("decimal", "user_", "user_01", "it has 2 characters"),
    ]
    return {
        "about": "The text forms of an ID; every invalid or refused text is ID_INVALID. `says`: what the refusal must mention.",
        "valid": valid,
        "invalid": [{"format": f, "text": t} for f, t in invalid],
        "spelled": [{"format": f, "prefix": p, "text": t, "id": str(id)} for f, p, t in spelled],
        "refused": [{"format": f, "prefix": p, "text": t, "says": s} for f, p, t, s in refused],
    }


# --- layouts ---------------------------------------------------------------------------------

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
PRESETS = {
    "standard": "time:41@1ms node:10 sequence:12 epoch:1735689600000",
    "twitter": "time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1288834974657",
    "simple": "time:41@1ms worker:5 datacenter:5 sequence:12 epoch:1596211200000",
    "leaf": "time:41@1ms worker:10 sequence:12 epoch:1288834974657",
    "shardingsphere": "time:41@1ms worker:10 sequence:12 epoch:1477958400000",
    "baidu": "time:28@1s worker:22 sequence:13 epoch:1463673600000",
    "sonyflake": "time:39@10ms sequence:8 machine:16 epoch:1735689600000",
    "discord": "time:41@1ms worker:5 process:5 sequence:12 epoch:1420070400000",
    "instagram": "time:40@1ms shard:13 sequence:10 epoch:1314220021721",
    "game": "time:31@1s server:20 sequence:12 epoch:1735689600000",
    "game16": "time:31@1s server:16 sequence:16 epoch:1735689600000",
    "js53": "time:31@1s node:10 sequence:12 epoch:1735689600000",
}
OTHERS = {
    "time:41@1ms business:4 machine:6 sequence:12 epoch:2025-01-01": "time:41@1ms business:4 machine:6 sequence:12 epoch:1735689600000",
    "  time:42@7s   generator:8 sequence:13  epoch:1970-01-01 ": "time:42@7s generator:8 sequence:13 epoch:1970-01-01",
    "time:40@1000ms sequence:12 epoch:2025-01-01T02:00:00+02:00": "time:40@1s sequence:12 epoch:1735689600000",
    "time:20@60m a:1 sequence:1 b_2:1 epoch:1601-01-01": "time:20@1h a:1 sequence:1 b_2:1 epoch:1601-01-01",
    "time:62@1h sequence:1 epoch:1970-01-01": "time:62@1h sequence:1 epoch:1970-01-01",
    "time:1@1ms sequence:62 epoch:1970-01-01": "time:1@1ms sequence:62 epoch:1970-01-01",
    "time:41@1ms worker:5 datacenter:5 sequence:12 epoch:1969-12-31T16:00:00Z": "time:41@1ms worker:5 datacenter:5 sequence:12 epoch:1969-12-31T16:00:00Z",
    "time:41@1ms node:10 sequence:12 epoch:1970-01-01T00:00:00.001Z": "time:41@1ms node:10 sequence:12 epoch:1970-01-01T00:00:00.001Z",
    "time:41@1ms node:10 sequence:12 epoch:1990-01-01": "time:41@1ms node:10 sequence:12 epoch:631152000000",
    "time:41@1ms node:10 sequence:12 epoch:631152000000": "time:41@1ms node:10 sequence:12 epoch:631152000000",
}


def epoch_ms(text):
    if text.removeprefix("-").isdecimal():
        return int(text)
    since = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC) - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return since // datetime.timedelta(milliseconds=1)


class Layout:
    def __init__(self, canonical):
        time, *fields, epoch = canonical.split()
        bits, tick = time.removeprefix("time:").split("@")
        unit = tick.lstrip("0123456789")
        self.text = canonical
        self.time_bits, self.tick_ms = int(bits), int(tick.removesuffix(unit)) * UNITS[unit]
        self.epoch_ms = epoch_ms(epoch.removeprefix("epoch:"))
        self.fields = [(name, int(width)) for name, width in (field.split(":") for field in fields)]

    def compose(self, tick, **values):
        number = tick
        for name, width in self.fields:
            assert 0 <= values[name] < 2**width
            number = number << width | values[name]
        return number

    def take_apart(self, number):
        fields = {}
        for name, width in reversed(self.fields):
            number, fields[name] = divmod(number, 2**width)
        return number, {name: fields[name] for name, _ in self.fields}

    def describe(self, given):
        nodes = [[name, width] for name, width in self.fields if name != "sequence"]
        sequence = dict(self.fields)["sequence"]
        end = self.epoch_ms + 2**self.time_bits * self.tick_ms
        return {
            "text": given,
            "canonical": self.text,
            "time_bits": self.time_bits,
            "tick_ms": self.tick_ms,
            "epoch_ms": self.epoch_ms,
            "fields": nodes,
            "sequence_bits": sequence,
            "nodes": str(2 ** sum(width for _, width in nodes)),
            "ids_per_second": 2**sequence * 1000 / self.tick_ms,
            "expires_at_ms": end if end <= LAST_MS else None,
        }


def layouts():
    invalid = [
        (
            "time:37@1ms server:20 sequence:16 epoch:2025-01-01",
            "LAYOUT_INVALID",
            ["73", "63", "10 must go", "4.36 years", "1048576 nodes", "65536 IDs"],
        ),
        ("time:41@1ms shard:13 sequence:10 epoch:1314220021721", "LAYOUT_INVALID", ["64", "63"]),
        ("", "SPEC", ["preset"]),
        ("nonsense", "SPEC", ["nonsense", "twitter"]),
        ("Twitter", "SPEC", ["Twitter"]),
        ("time:41@1ms", "LAYOUT_INVALID", ["epoch"]),
        ("time:41@1ms epoch:1970-01-01", "LAYOUT_INVALID", ["sequence"]),
        ("node:10 time:41@1ms sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["node", "time"]),
        ("time:41 node:10 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["tick"]),
        ("time:41@0ms node:10 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["1ms to 1h"]),
        ("time:41@2h node:10 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["1ms to 1h"]),
        ("time:41@1 node:10 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["ms, s, m or h"]),
        ("time:41@99999999999999999999s node:1 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["tick"]),
        ("time:0@1ms node:10 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["1 to 63"]),
        ("time:41@1ms node:0 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["node", "1 to 63"]),
        ("time:41@1ms node:-1 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["-1"]),
        ("time:41@1ms node:9999999999 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["9999999999"]),
        ("time:41@1ms node:5 node:5 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["node", "twice"]),
        ("time:41@1ms Node:5 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["Node"]),
        ("time:41@1ms 5node:5 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["5node"]),
        ("time:41@1ms store:5 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["store", "reserved"]),
        ("time:41@1ms looks_rounded:5 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["looks_rounded", "reserved"]),
        ("time:41@1ms tick:5 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["tick", "reserved"]),
        ("time:41@1ms node:5 sequence:12 epoch:yesterday", "SPEC", ["epoch", "yesterday"]),
        ("time:41@1ms node:5 sequence:12 epoch:99999999999999999999", "OUT_OF_RANGE", ["epoch"]),
        ("time:41@1ms node:5 sequence:12 epoch:1735689600", "OUT_OF_RANGE", ["1735689600000", "1970-01-21T02:08:09.6Z", "milliseconds"]),
        ("time:41@1ms node:5 sequence:12 epoch:0", "OUT_OF_RANGE", ["written as a date, 1970-01-01"]),
        ("time:41@1ms node:5 sequence:12 epoch:-28800000", "OUT_OF_RANGE", ["written as a date, 1969-12-31T16:00:00Z"]),
        ("time:41@1ms node:5 sequence:12 epoch:631151999999", "OUT_OF_RANGE", ["1989-12-31T23:59:59.999Z"]),
        ("time:41@1ms node:5 sequence:12 epoch:1970-01-01 epoch:1970-01-01", "LAYOUT_INVALID", ["epoch"]),
        ("time:41@1ms node sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["node"]),
        ("time:41@1ms nöde:5 sequence:12 epoch:1970-01-01", "LAYOUT_INVALID", ["nöde"]),
    ]
    given = PRESETS | {text: text for text in PRESETS.values()} | OTHERS
    return {
        "about": "Layouts and presets; numbers computed independently. `says`: what the refusal must mention.",
        "valid": [Layout(canonical).describe(text) for text, canonical in given.items()],
        "invalid": [{"text": t, "error": e, "says": s} for t, e, s in invalid],
    }


# --- replays ---------------------------------------------------------------------------------


class Replay:
    """One generator under the manual clock. The models below compute its expected answers."""

    def __init__(self, name, preset, spec, **node):
        self.name, self.layout, self.node = name, Layout(PRESETS.get(preset, preset)), node
        fields = " ".join(f"{key}={value}" for key, value in node.items())
        first = preset if preset in PRESETS else f'layout="{preset}"'
        self.spec = " ".join(f"{first} {fields} {spec} clock=manual detached=true".split())
        self.steps = []

    def id(self, tick, sequence):
        return str(self.layout.compose(tick, sequence=sequence, **self.node))

    def at(self, tick):
        self.tick = tick
        self.steps.append(["set_time", self.layout.epoch_ms + tick * self.layout.tick_ms])

    def next(self, sequence, tick=None):
        self.steps.append(["next", self.id(self.tick if tick is None else tick, sequence)])

    def batch(self, count, first, last):
        self.steps.append(["batch", count, self.id(*first), self.id(*last)])

    def error(self, code):
        self.steps.append(["error", code])

    def credit(self, count):
        self.steps.append(["credit", count])

    def done(self):
        return {"name": self.name, "spec": self.spec, "steps": self.steps}


def replays():
    out = []

    r = Replay("twitter: same tick +1, a new tick starts at 0", "twitter", "", datacenter=11, worker=26)
    r.error("CLOCK_NOT_SET")
    r.at(1000), r.next(0), r.next(1), r.next(2)
    r.at(1001), r.next(0)
    r.at(5000), r.next(0), r.next(1)
    out.append(r)

    r = Replay("twitter: an overflow waits for the next tick", "twitter", "", datacenter=1, worker=7)
    r.at(10), r.batch(4096, (10, 0), (10, 4095)), r.error("WOULD_BLOCK"), r.error("WOULD_BLOCK")
    r.at(11), r.next(0), r.next(1)
    out.append(r)

    r = Replay("twitter: a clock that went back is refused until it has caught up", "twitter", "", datacenter=1, worker=7)
    r.at(500), r.next(0), r.next(1)
    r.at(499), r.error("CLOCK_BACK"), r.error("CLOCK_BACK")
    r.at(100), r.error("CLOCK_BACK")
    r.at(500), r.next(2)
    r.at(501), r.next(0)
    out.append(r)

    r = Replay("simple: worker above datacenter, and 4095 is not wasted", "simple", "", worker=1, datacenter=1)
    r.at(745279092), r.batch(4095, (745279092, 0), (745279092, 4094)), r.next(4095), r.error("WOULD_BLOCK")
    out.append(r)

    r = Replay("leaf: up to 5 ms back waits, more is refused", "leaf", "start=zero", worker=12)
    r.at(1000), r.next(0)
    r.at(995), r.error("WOULD_BLOCK")
    r.at(994), r.error("CLOCK_BACK")
    r.at(1000), r.next(1)
    out.append(r)

    r = Replay("shardingsphere: the start alternates 0, 1, 0, 1; up to 10 ms back waits", "shardingsphere", "", worker=3)
    r.at(1), r.next(0)
    r.at(2), r.next(1), r.next(2)
    r.at(7), r.next(0)
    r.at(8), r.next(1)
    r.at(1), r.error("WOULD_BLOCK")
    r.at(9), r.next(0)
    out.append(r)

    r = Replay("shardingsphere: vibration offset 3 cycles 0 to 3", "shardingsphere", "start=alternate:3", worker=3)
    for tick, first in enumerate([0, 1, 2, 3, 0, 1]):
        r.at(100 + tick), r.next(first)
    out.append(r)

    r = Replay("cosid: the sequence continues across ticks, modulo N", "twitter", "start=continue:4", datacenter=0, worker=0)
    r.at(1), r.next(0)
    r.at(2), r.next(1)
    r.at(3), r.next(2), r.next(3), r.next(4)
    r.at(4), r.next(1)
    r.at(9), r.next(2)
    out.append(r)

    r = Replay("take last + 1: after a rollback IDs go on in logical time", "twitter", "rollback=ahead:100ms", datacenter=2, worker=3)
    r.at(1000), r.next(0)
    r.at(950), r.next(1, 1000), r.batch(4094, (1000, 2), (1000, 4095)), r.next(0, 1001)
    r.at(900), r.error("CLOCK_BACK")
    r.at(1001), r.next(1)
    r.at(1002), r.next(0)
    out.append(r)

    r = Replay("uidgenerator, cached: a full tick borrows from future ticks", "twitter", "exhausted=ahead:2ms", datacenter=2, worker=3)
    r.at(50), r.batch(3 * 4096, (50, 0), (52, 4095)), r.error("EXHAUSTED")
    r.at(51), r.batch(4096, (53, 0), (53, 4095)), r.error("EXHAUSTED")
    r.at(54), r.next(0)
    out.append(r)

    r = Replay("uidgenerator, default: seconds; refuses a rollback, waits for the next second", "baidu", "", worker=77)
    r.at(5), r.batch(8192, (5, 0), (5, 8191)), r.error("WOULD_BLOCK")
    r.at(6), r.next(0)
    r.at(5), r.error("CLOCK_BACK")
    out.append(r)

    r = Replay("sonyflake: 256 in 10 ms, the sequence above the machine", "sonyflake", "", machine=40000)
    r.at(77), r.batch(256, (77, 0), (77, 255)), r.error("WOULD_BLOCK")
    r.at(78), r.next(0)
    r.at(70), r.next(1, 78)
    out.append(r)

    r = Replay("exhausted=error: a frame is never blocked", "twitter", "exhausted=error", datacenter=1, worker=1)
    r.at(3), r.batch(4096, (3, 0), (3, 4095)), r.error("EXHAUSTED"), r.error("EXHAUSTED")
    r.at(4), r.next(0)
    out.append(r)

    r = Replay("game: 16 s of credit are 17 ticks of 4,096 in one frame", "game", "start=zero", server=4711)
    r.at(100), r.credit(4096), r.next(0), r.credit(4095)
    r.at(101), r.credit(8191)
    r.at(116), r.credit(17 * 4096 - 1), r.batch(65536, (100, 1), (116, 0)), r.credit(4095)
    r.batch(4095, (116, 1), (116, 4095)), r.error("EXHAUSTED")
    r.at(1000), r.credit(17 * 4096), r.next(0, 984)
    out.append(r)

    r = Replay("after: never at or below an ID of the system before", "twitter", "after=" + str(2000 << 22 | 9), datacenter=0, worker=0)
    r.at(1000), r.error("WOULD_BLOCK")
    r.at(2000), r.error("WOULD_BLOCK")
    r.at(2001), r.next(0)
    out.append(r)

    r = Replay("the end of the layout", "twitter", "", datacenter=1, worker=1)
    r.steps.append(["set_time", r.layout.epoch_ms - 1])
    r.error("BEFORE_EPOCH")
    r.at(2**41 - 1), r.batch(4096, (2**41 - 1, 0), (2**41 - 1, 4095)), r.error("LAYOUT_EXPIRED")
    r.at(2**41), r.error("LAYOUT_EXPIRED")
    out.append(r)

    return {
        "about": "What a generator answers under the manual clock, step by step; computed independently.",
        "replays": [r.done() for r in out],
    }


# --- takeover --------------------------------------------------------------------------------

COSID = "time:41@1ms machine:10 sequence:12 epoch:1577203200000"
SONYFLAKE_1 = "time:39@10ms sequence:8 machine:16 epoch:1409529600000"
# The packages, each with one of its IDs of 2025-07-01T00:00:00Z.
PACKAGES = {
    "snowflake-id (PyPI, npm)": ("time:41@1ms node:10 sequence:12 epoch:1970-01-01", 7345602035712172033),
    "pysnowflake": ("time:41@1ms dc:2 worker:8 sequence:12 epoch:1987-06-10", 5037553719706677249),
    "@sapphire/snowflake": ("time:41@1ms worker:5 process:5 sequence:12 epoch:1577836800000", 727674834125213697),
    "nodejs-snowflake": ("time:41@1ms instance:12 sequence:10 epoch:1577836800000", 727674834127201281),
}


class Takeover(Replay):
    """A generator that continues after `last`, the last ID that the earlier system issued with the same node number."""

    def __init__(self, system, preset, spec, last):
        layout = Layout(PRESETS.get(preset, preset))
        self.theirs, self.last = layout.take_apart(last)
        super().__init__(system, preset, spec, **{name: value for name, value in self.last.items() if name != "sequence"})
        self.number = last
        # The last tick may contain unknown IDs of the earlier system, so the first new ID is in the next tick.
        self.after(0)

    def after(self, ticks):
        self.at(self.theirs + ticks)

    def done(self):
        return {
            "system": self.name,
            "spec": self.spec,
            "layout": self.layout.text,
            "last": str(self.number),
            "unix_ms": self.layout.epoch_ms + self.theirs * self.layout.tick_ms,
            "fields": self.last,
            "steps": self.steps,
        }


def takeover():
    out = []

    t = Takeover("Twitter", "twitter", "", 1541815603606036480)
    t.error("WOULD_BLOCK")
    t.after(1), t.next(0), t.next(1)
    t.after(0), t.error("CLOCK_BACK")
    t.after(2), t.batch(4096, (t.theirs + 2, 0), (t.theirs + 2, 4095)), t.error("WOULD_BLOCK")
    out.append(t)

    t = Takeover("SimpleSnowflake", "simple", "", 3125927080759295)
    t.error("WOULD_BLOCK")
    t.after(1), t.batch(4096, (t.theirs + 1, 0), (t.theirs + 1, 4095)), t.error("WOULD_BLOCK")
    t.after(0), t.error("CLOCK_BACK")
    t.after(2), t.next(0)
    out.append(t)

    for system, (layout, last) in PACKAGES.items():
        t = Takeover(system, layout, "start=zero", last)
        t.error("WOULD_BLOCK")
        t.after(1), t.next(0), t.next(1)
        out.append(t)

    t = Takeover("Leaf-snowflake", "leaf", "start=zero", 1767225600000 - 1288834974657 << 22 | 12 << 12 | 57)
    t.error("WOULD_BLOCK")
    t.after(6), t.next(0)
    t.after(1), t.error("WOULD_BLOCK")
    t.after(0), t.error("CLOCK_BACK")
    t.after(6), t.next(1)
    out.append(t)

    t = Takeover("ShardingSphere", "shardingsphere", "", 1767225600000 - 1477958400000 << 22 | 3 << 12 | 1)
    t.error("WOULD_BLOCK")
    t.after(1), t.next(0)
    t.after(2), t.next(1)
    t.after(11), t.next(0), t.next(1)
    t.after(1), t.error("WOULD_BLOCK")
    t.after(0), t.error("CLOCK_BACK")
    out.append(t)

    t = Takeover("CosId", COSID, "start=continue:2048 rollback=error", 1767225600000 - 1577203200000 << 22 | 5 << 12 | 2047)
    t.error("WOULD_BLOCK")
    t.after(1), t.next(0)
    t.after(2), t.next(1), t.next(2)
    t.after(9), t.next(3)
    t.after(8), t.error("CLOCK_BACK")
    out.append(t)

    t = Takeover("UidGenerator, default", "baidu", "", 1704067200 - 1463673600 << 35 | 77 << 13 | 8191)
    t.error("WOULD_BLOCK")
    t.after(1), t.batch(8192, (t.theirs + 1, 0), (t.theirs + 1, 8191)), t.error("WOULD_BLOCK")
    t.after(0), t.error("CLOCK_BACK")
    t.after(2), t.next(0)
    out.append(t)

    for system, preset, epoch_ms in [("Sonyflake", "sonyflake", 1735689600000), ("Sonyflake 1", SONYFLAKE_1, 1409529600000)]:
        spec = "" if preset == "sonyflake" else "start=zero"
        t = Takeover(system, preset, spec, (1767225600000 - epoch_ms) // 10 << 24 | 200 << 16 | 40000)
        t.error("WOULD_BLOCK")
        t.after(1), t.batch(256, (t.theirs + 1, 0), (t.theirs + 1, 255)), t.error("WOULD_BLOCK")
        t.after(2), t.next(0)
        t.after(0), t.next(1, t.theirs + 2)
        out.append(t)

    t = Takeover("Discord", "discord", "start=zero", 175928847299117063)
    t.error("WOULD_BLOCK")
    t.after(1), t.next(0)
    t.after(0), t.next(1, t.theirs + 1)
    t.after(2), t.batch(4096, (t.theirs + 2, 0), (t.theirs + 2, 4095)), t.error("WOULD_BLOCK")
    out.append(t)

    t = Takeover("Instagram", "instagram", "start=zero", 11637205501278089)
    t.error("WOULD_BLOCK")
    t.after(1), t.batch(1024, (t.theirs + 1, 0), (t.theirs + 1, 1023)), t.error("WOULD_BLOCK")
    t.after(0), t.next(0, t.theirs + 2)
    t.after(2), t.next(1)
    out.append(t)

    t = Takeover("standard", "standard", "start=zero", 1767225600000 - 1735689600000 << 22 | 1023 << 12 | 4095)
    t.error("WOULD_BLOCK")
    t.after(1), t.next(0)
    t.after(-999), t.next(1, t.theirs + 1)
    t.after(-1000), t.error("CLOCK_BACK")
    out.append(t)

    t = Takeover("game", "game", "start=zero", 257698037779300351)
    t.error("EXHAUSTED")
    t.after(1), t.credit(4096), t.next(0), t.credit(4095)
    t.after(17), t.credit(17 * 4096 - 1), t.batch(65536, (t.theirs + 1, 1), (t.theirs + 17, 0))
    t.after(100), t.next(0, t.theirs + 84)
    out.append(t)

    t = Takeover("game16", "game16", "start=zero", 4294967295)
    t.error("EXHAUSTED")
    t.after(1), t.next(0)
    t.after(2), t.credit(2 * 65536 - 1)
    out.append(t)

    t = Takeover("js53", "js53", "start=zero", 1767225600 - 1735689600 << 22 | 7 << 12 | 9)
    t.error("WOULD_BLOCK")
    t.after(1), t.batch(4096, (t.theirs + 1, 0), (t.theirs + 1, 4095)), t.error("WOULD_BLOCK")
    out.append(t)

    return {
        "about": "A generator of each system's layout and policies continues after the last ID of the system before, opened with `after=` or by `observe`.",
        "takeovers": [t.done() for t in out],
    }


def main():
    wrong = []
    for name, content in {"texts": texts(), "layouts": layouts(), "replays": replays(), "takeover": takeover()}.items():
        path = HERE / f"{name}.json"
        rows = json.dumps(content, ensure_ascii=False, indent=1)
        if "--check" not in sys.argv:
            path.write_text(rows + "\n")
        elif path.read_text() != rows + "\n":
            wrong.append(path.name)
    if wrong:
        sys.exit(f"{', '.join(wrong)} differ from what generate.py computes: run python3 tests/vectors/generate.py")


main()
