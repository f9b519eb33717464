"""The results that the functions must give, computed from tests/vectors and independently of frazil, for layouts of every kind."""

import json
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from databases import text_of

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
LAST_MS = 253402300799999  # 9999-12-31T23:59:59.999Z, where dates end
TICKS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

# Layouts that the vectors lack: other ticks, fields named like SQL keywords, an end on the last date, the first date as epoch.
MORE = [
    "time:40@16ms node:10 sequence:12 epoch:1735689600000",
    "time:39@17ms order:8 sequence:14 epoch:1735689600123",
    "time:35@5m select:5 sequence:6 group:7 user:3 epoch:0001-01-01",
    "time:48@1ms a:1 sequence:14 epoch:0001-01-01",
    "time:47@7ms table:3 sequence:12 epoch:1969-12-31T23:59:59.001Z",
]


def instant(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def vectors(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


class Layout:
    """A layout, parsed from its canonical text."""

    def __init__(self, text):
        self.text = text
        names = re.findall(r"(\w+):(\d+)", text.rpartition(" ")[0])
        epoch = text.rpartition(" epoch:")[2]
        self.epoch_ms = int(epoch) if epoch.isdecimal() else (instant(epoch) - instant("1970-01-01")) // timedelta(milliseconds=1)
        number, unit = re.search(r"@(\d+)([a-z]+)", text).groups()
        self.tick_ms = int(number) * TICKS[unit]
        self.fields, self.shift = {}, 0
        for name, bits in reversed(names[1:]):
            self.fields[name] = (self.shift, 2 ** int(bits) - 1)
            self.shift += int(bits)
        ticks = min(2 ** int(names[0][1]), (LAST_MS - self.epoch_ms) // self.tick_ms + 1)
        self.last_id = ticks * 2**self.shift - 1
        end_ms = self.epoch_ms + 2 ** int(names[0][1]) * self.tick_ms
        self.last_ms = min(end_ms - 1, LAST_MS)
        self.beyond = "LAYOUT_EXPIRED" if end_ms <= LAST_MS else "OUT_OF_RANGE"

    def unix_ms(self, number):
        return self.epoch_ms + (number >> self.shift) * self.tick_ms

    def time(self, number):
        return text_of(self.unix_ms(number) * 1000)[:-3]

    def field(self, name, number):
        shift, most = self.fields[name]
        return number >> shift & most

    def min_id(self, unix_us):
        return (unix_us // 1000 - self.epoch_ms) // self.tick_ms << self.shift

    def max_id(self, unix_us):
        return self.min_id(unix_us) + 2**self.shift - 1

    def ids(self):
        """Returns IDs at every edge, and some random ones."""
        edges = {0, 1, self.last_id, self.last_id - 1, 2**self.shift - 1, 2**self.shift}
        for shift, most in self.fields.values():
            edges |= {1 << shift, most << shift, (most << shift) - 1, self.last_id - (most << shift)}
        edges |= {1 << bit for bit in range(self.last_id.bit_length())}
        known = {int(case["id"]) for case in vectors("known_ids")["vectors"] if case["layout"] in (self.text, PRESETS.get(self.text))}
        chance = random.Random(self.text)
        return sorted(
            number for number in edges | known | {chance.randint(0, self.last_id) for _ in range(100)} if 0 <= number <= self.last_id
        )

    def instants(self):
        """Returns instants in Unix microseconds at every edge, and some random ones."""
        first, end = self.epoch_ms * 1000, self.last_ms * 1000 + 999
        tick = self.tick_ms * 1000
        edges = {first, first + 1, first + 999, first + 1000, first + tick - 1, first + tick, end, end - 999, end - 1000, end - tick}
        # The beginnings of a day, a year, a daylight-saving time and a leap second.
        edges |= {
            ms * 1000 + us
            for ms in (0, 1_735_689_600_000, 1_743_296_400_000, 1_483_228_799_999, 1_656_432_460_105)
            for us in (-1, 0, 1, 999)
        }
        chance = random.Random(self.text)
        return sorted(us for us in edges | {chance.randint(first, end) for _ in range(100)} if first <= us <= end)


PRESETS = {case["canonical"]: case["text"] for case in vectors("layouts")["valid"] if ":" not in case["text"]}
LAYOUTS = [Layout(text) for text in dict.fromkeys([case["canonical"] for case in vectors("layouts")["valid"]] + MORE)]
