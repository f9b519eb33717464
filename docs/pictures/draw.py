"""Draws the guide's pictures: docs/pictures/draw.py [--check | --narrow FOLDER]. They need no package, and the same script gives the same
files. The narrow forms are for phones; the guide's site is built with them.

Each picture is a card with its own background, so that it can be read on a light and on a dark page. `shards.json` is what
measure_shards.py has counted, `demo.json` what record_demo.py has recorded, and `fleet.json` what `bench/run.sh fleet simulation` has.
"""

import functools
import json
import math
import sys
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
STYLE = """
text{font:14px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.small{font-size:12px}.dim{fill:#59636e}.bold{font-weight:600}.mono{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.card{fill:#ffffff;stroke:#d1d9e0}.line{stroke:#59636e;fill:none}.grid{stroke:#d1d9e0;fill:none}
.time{fill:#cfe6ff;stroke:#3a7fc4}.node{fill:#ffe3b8;stroke:#c07a16}.sequence{fill:#d3f0d3;stroke:#3f9142}.box{fill:#f3f5f7;stroke:#8c959f}
.wait{fill:url(#hatch);stroke:#8c959f}.bad{stroke:#cf222e;fill:none}.badtext{fill:#cf222e}.bound{stroke:#a75c00;fill:none}.boundtext{fill:#8a4b00}
.issued{stroke:#3a7fc4;fill:none}.hatching{stroke:#8c959f}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.dim{fill:#9da7b3}.card{fill:#151b23;stroke:#3d444d}.line{stroke:#9da7b3}.grid{stroke:#3d444d}
.time{fill:#123a63;stroke:#6cb0f5}.node{fill:#573a0a;stroke:#e5a54b}.sequence{fill:#174a1f;stroke:#6cc072}.box{fill:#262c36;stroke:#818b98}
.bad{stroke:#ff7b72}.badtext{fill:#ff7b72}.bound{stroke:#f0b35c}.boundtext{fill:#f0b35c}.issued{stroke:#6cb0f5}
}
"""


# The width of a picture on a phone.
NARROW = 400


class Picture:
    def __init__(self, width, height, title):
        self.size, self.title, self.parts = (width, height), title, []

    def text(self, x, y, text, style="", anchor="start"):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>')

    def box(self, x, y, width, height, style, label="", small=False):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" class="{style}"/>')
        if label:
            self.text(x + width / 2, y + height / 2 + 5, label, "small" if small else "", "middle")

    def line(self, points, style="line", width=1.5, dashed=False, arrow=False):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        end = ' marker-end="url(#arrow)"' if arrow else ""
        self.parts.append(f'<polyline points="{path}" class="{style}" stroke-width="{width:g}"{dash}{end}/>')

    def wrapped(self, x, y, text, columns, style=""):
        """Lines of text, from this one down; returns the place of the next line."""
        for line in textwrap.wrap(text, columns):
            self.text(x, y, line, style)
            y += 18
        return y

    def cross(self, x, y):
        for dy in (-7, 7):
            self.line([(x - 7, y - dy), (x + 7, y + dy)], "bad", 3)

    def svg(self):
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n"
            '<defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
            '<line x1="0" y1="0" x2="0" y2="8" class="hatching" stroke-width="3"/></pattern>'
            '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
            '<path d="M0,0 L8,4 L0,8 z" fill="#7d8590"/></marker></defs>\n'
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" class="card"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


PROCESSES = [("Python worker", 3), ("Node.js API", 17), ("C++ game server", 42)]


def overview():
    """Contents: programs lease numbers from a store, and put them between the time and a counter."""
    p = Picture(860, 330, "Three processes lease node numbers from one store, and mint IDs of time, node number and sequence")
    p.box(24, 24, 812, 46, "box")
    p.text(40, 52, "Your store", "bold")
    p.text(132, 52, "remembers node numbers: a folder, Redis, PostgreSQL, MariaDB/MySQL, etcd, ZooKeeper", "dim")
    for number, (name, node) in enumerate(PROCESSES):
        x = 24 + 280 * number
        p.line([(x + 126, 74), (x + 126, 112)], "line", 1.5, arrow=True)
        p.text(x + 136, 98, f"leases node {node}", "small dim")
        p.box(x, 116, 252, 44, "box")
        p.text(x + 126, 143, name, "bold", "middle")
        p.line([(x + 126, 160), (x + 126, 190)], "line", 1.5, arrow=True)
        p.text(x + 136, 180, "mints by itself", "small dim")
        p.box(x, 194, 132, 34, "time", "20:41:07.315", True)
        p.box(x + 132, 194, 56, 34, "node", str(node), True)
        p.box(x + 188, 194, 64, 34, "sequence", str(number), True)
    p.text(24, 262, "One ID: 63 bits", "bold")
    p.box(24, 274, 540, 34, "time", "time: 41 bits, milliseconds since 2025-01-01")
    p.box(564, 274, 132, 34, "node", "node: 10 bits")
    p.box(696, 274, 140, 34, "sequence", "sequence: 12 bits")
    return p


def overview_narrow():
    p = Picture(NARROW, 468, overview().title)
    p.box(16, 16, 368, 70, "box")
    p.text(28, 38, "Your store remembers node numbers:", "bold")
    p.text(28, 58, "a folder, Redis, PostgreSQL, MySQL,", "dim")
    p.text(28, 76, "MariaDB, etcd, ZooKeeper", "dim")
    for number, (name, node) in enumerate(PROCESSES):
        y = 116 + 94 * number
        p.line([(24, 86), (24, y + 17), (38, y + 17)], "line", 1.5, arrow=True)
        p.text(40, y - 8, f"leases node {node}", "small dim")
        p.box(40, y, 118, 34, "box", name, True)
        p.line([(158, y + 17), (184, y + 17)], "line", 1.5, arrow=True)
        p.box(186, y, 100, 34, "time", "20:41:07.315", True)
        p.box(286, y, 44, 34, "node", str(node), True)
        p.box(330, y, 54, 34, "sequence", str(number), True)
        p.text(186, y + 50, "mints by itself", "small dim")
    p.text(16, 396, "One ID: 63 bits", "bold")
    p.box(16, 408, 210, 34, "time", "time: 41 bits, in ms", True)
    p.box(226, 408, 74, 34, "node", "node: 10", True)
    p.box(300, 408, 84, 34, "sequence", "sequence: 12", True)
    return p


# An ID, and its parts.
IDENTITY, TIME, NODE, SEQUENCE = 250318245867245581, 59680520502, 885, 13
assert IDENTITY == TIME << 22 | NODE << 12 | SEQUENCE


def bits_narrow():
    p = Picture(NARROW, 368, bits().title)
    p.text(16, 32, str(IDENTITY), "bold mono")
    p.text(16, 52, "an ID of the layout standard; its top bit is 0", "small dim")
    for row, (name, value, size, style, more) in enumerate(
        [
            ("time", TIME, 41, "time", f"{TIME:,} ms since 2025-01-01"),
            ("node", NODE, 10, "node", f"number {NODE} of 1,024"),
            ("sequence", SEQUENCE, 12, "sequence", f"number {SEQUENCE} of 4,096 in this tick"),
        ]
    ):
        y = 74 + row * 92
        for place, bit in enumerate(format(value, f"0{size}b")):
            p.parts.append(f'<rect x="{16 + place * 8.98:g}" y="{y}" width="8.98" height="28" class="{style}"/>')
            p.text(16 + (place + 0.5) * 8.98, y + 19, bit, "small mono", "middle")
        p.text(16, y + 47, f"{name}, {size} bits", "bold")
        p.text(16, y + 65, more)
    p.text(16, 352, "Time is on top, so IDs sort by time.", "dim")
    return p


def bits():
    """The bits of one ID, taken apart."""
    time, node, sequence = TIME, NODE, SEQUENCE
    p = Picture(860, 236, "The ID 250318245867245581, taken apart into time, node number and sequence")
    p.text(24, 36, "250318245867245581", "bold mono")
    p.text(204, 36, "an ID of the layout standard, from the most significant bit down", "dim")
    width = 12.6
    x = 24
    for name, value, size, style in [
        ("", 0, 1, "box"),
        ("time", time, 41, "time"),
        ("node", node, 10, "node"),
        ("seq", sequence, 12, "sequence"),
    ]:
        for place, bit in enumerate(format(value, f"0{size}b")):
            p.parts.append(f'<rect x="{x + place * width:g}" y="60" width="{width:g}" height="30" class="{style}"/>')
            p.text(x + (place + 0.5) * width, 80, bit, "small mono", "middle")
        end = x + size * width
        if name:
            p.line([(x + 2, 98), (x + 2, 104), (end - 2, 104), (end - 2, 98)])
        middle = (x + end) / 2
        if name == "time":
            p.text(middle, 126, "time, 41 bits", "bold", "middle")
            p.text(middle, 148, f"{time:,} ticks of 1 ms since the epoch, 2025-01-01", "", "middle")
            p.text(middle, 168, "2026-11-22 17:55:20.502 UTC", "dim", "middle")
        elif name == "node":
            p.text(middle, 126, "node, 10 bits", "bold", "middle")
            p.text(middle, 148, f"number {node}", "", "middle")
            p.text(middle, 168, "of 1,024", "dim", "middle")
        elif name == "seq":
            p.text(middle, 126, "sequence, 12 bits", "bold", "middle")
            p.text(middle, 148, f"number {sequence}", "", "middle")
            p.text(middle, 168, "of 4,096 in this tick", "dim", "middle")
        x = end
    p.text(24, 212, "The top bit is 0, so the ID is a positive BIGINT. Time is on top, so IDs sort by time.", "dim")
    return p


def window(narrow=False):
    """The window protocol: IDs below a staircase."""
    p = Picture(
        NARROW if narrow else 860,
        478 if narrow else 500,
        "The window protocol: a process writes its bound to the store before it issues IDs, and the next owner starts above it",
    )
    left, bottom, per_s, per_t = (24, 368, 2.65, 1.95) if narrow else (84, 410, 5.6, 2.2)
    at = lambda t, stamp: (left + t * per_s, bottom - stamp * per_t)
    p.line([at(0, 0), at(132, 0)], "line", 1.5, arrow=True)
    p.line([at(0, 0), at(0, 160)], "line", 1.5, arrow=True)
    for t in range(20, 130, 20):
        p.line([at(t, 0), at(t, 150)], "grid", 1)
        p.text(at(t, 0)[0], bottom + 20, f"{t} s", "small dim", "middle")
    if not narrow:
        p.text(at(132, 0)[0], bottom + 42, "real time", "small dim", "end")
    p.text(16 if narrow else 24, 36, "stamps of the IDs of node 5" + ", over real time" * narrow, "small dim")
    p.line([at(0, 0), at(25, 25)], "issued", 4)
    p.line([at(0, 60), at(10, 60), at(10, 70), at(20, 70), at(20, 80), at(80, 80)], "bound", 2.5)
    p.line([at(0, 60), at(0, 0)], "bound", 1, dashed=True)
    p.text(at(1, 0)[0] + 3 * narrow, at(0, 52)[1], "first bound: 60 s", "small boundtext")
    p.text(at(21, 0)[0] + 3 * narrow, at(0, 71)[1], "each renewal moves it by 10 s", "small boundtext")
    p.text(at(1 if narrow else 24, 0)[0] + 3 * narrow, at(0, 84)[1], "bound 80 s stays in the store", "small boundtext")
    p.cross(*at(25, 25))
    p.text(at(27, 0)[0] + 6 * narrow, at(0, 22)[1], "process A crashes at 25 s", "badtext")
    p.line([at(25, 25), at(80, 80)], "grid", 2, dashed=True)
    p.line([at(81, 81), at(126, 126)], "issued", 4)
    p.line([at(81, 141), at(91, 141), at(91, 151), at(101, 151)], "bound", 2.5)
    p.text(at(79, 0)[0], at(0, 140)[1], "B's first bound", "small boundtext", "end")
    if narrow:
        p.text(at(79, 0)[0], at(0, 118)[1], "process B takes node 5", "bold small", "end")
        p.text(at(79, 0)[0], at(0, 109)[1], "and starts above 80 s", "small", "end")
    else:
        p.text(at(97, 0)[0], at(0, 84)[1], "process B takes node 5", "bold")
        p.text(at(97, 0)[0], at(0, 76)[1], "and starts above 80 s", "")
    p.text(at(2, 0)[0] + (34 if narrow else 52), at(0, 6)[1], "A issues IDs", "small")
    text = "window=60s renew=10s. A moves its bound in the store before it issues IDs up to it, and never passes it. "
    text += "B starts above it. So the IDs of two owners cannot meet, whatever their clocks say."
    p.wrapped(16 if narrow else 24, 412 if narrow else 468, text, 57 if narrow else 105, "small dim")
    return p


class Lanes(Picture):
    """Processes as lanes over time; their names are beside them, or on a phone above."""

    def __init__(self, rows, title, seconds, every, narrow):
        self.top, self.height = (92, 58) if narrow else (58, 44)
        super().__init__(NARROW if narrow else 860, self.top + rows * self.height + (82 if narrow else 60), title)
        self.narrow, self.left, self.rows = narrow, 16 if narrow else 190, rows
        self.per_s = (360 if narrow else 640) / seconds
        bottom = self.top + rows * self.height + 4
        for t in range(0, seconds + 1, every):
            self.line([(self.x(t), self.top - 10), (self.x(t), bottom)], "grid", 1)
            self.text(
                self.x(t),
                bottom + 18,
                f"{t} s",
                "small dim",
                "end" if narrow and t == seconds else "start" if narrow and t == 0 else "middle",
            )
        if narrow:
            self.wrapped(16, 28, title, 46, "bold")
        else:
            self.text(24, 32, title, "bold")

    def x(self, t):
        return self.left + t * self.per_s

    def y(self, row):
        return self.top + row * self.height + (20 if self.narrow else 0)

    def lane(self, row, name, *bars):
        y = self.y(row)
        if self.narrow:
            self.text(16, y - 5, name, "small")
        else:
            self.text(24, y + 20, name)
        for start, end, style, label in bars:
            self.box(self.x(start), y, (end - start) * self.per_s, 30, style, label, True)
        return y + 15

    def bound(self, t, label, rows):
        self.line([(self.x(t), self.top - 6), (self.x(t), self.y(rows) - (28 if self.narrow else 8))], "bound", 2, dashed=True)
        self.text(self.x(t) + 6, self.top - 2, label, "small boundtext")

    def foot(self, text):
        if self.narrow:
            self.wrapped(16, self.size[1] - 30, text, 60, "small dim")
        else:
            self.text(24, self.size[1] - 12, text, "small dim")


def crash(narrow=False):
    p = Lanes(3, "A crash: the number waits for its bound, the program does not", 100, 20, narrow)
    y = p.lane(0, "A", (0, 25, "time", "node 5"))
    p.cross(p.x(25), y)
    p.lane(1, "B, any number", (27, 100, "node", "node 9, at once"))
    p.lane(2, "C, wants node 5", (27, 80, "wait", ""), (80, 100, "time", "node 5"))
    p.bound(80, "A's bound", 3)
    p.foot("window=60s: A's last renewal was at 20 s, so its bound is 80 s. Hatched: open() waits.")
    return p


def pause(narrow=False):
    p = Lanes(3, "A pause: the old owner wakes up after its bound, and cannot issue", 120, 20, narrow)
    p.lane(0, "A", (0, 15, "time", "node 5"), (15, 96, "wait", ""), (97, 120, "node", "node 9"))
    p.lane(1, "B, wants node 5", (22, 70, "wait", ""), (70, 120, "time", "node 5"))
    p.bound(70, "A's bound", 2)
    at, anchor = (p.x(120), "end") if narrow else (p.x(96), "middle")
    p.text(at, p.y(1) + 50, "A wakes up, sees 96 s > 70 s, asks the", "small", anchor)
    p.text(at, p.y(1) + 66, "store, and leases another number", "small", anchor)
    p.foot("A was stopped from 15 s to 96 s: a virtual machine that was suspended, SIGSTOP, a debugger.")
    return p


def fork(narrow=False):
    p = Lanes(3, "A fork: the child never mints with its parent's number", 100, 20, narrow)
    p.lane(0, "parent", (0, 100, "time", "node 5"))
    p.lane(1, "child, leased", (40, 46, "wait", ""), (46, 100, "node", "node 9, leased on first use"))
    p.lane(2, "child, fixed", (40, 100, "box", "each call is refused: FORKED"))
    p.line([(p.x(36), p.y(0) + 15), (p.x(36), p.y(2) + 15)], "line", 1.5)
    for row in (1, 2):
        p.line([(p.x(36), p.y(row) + 15), (p.x(40) - 1, p.y(row) + 15)], "line", 1.5, arrow=True)
    p.foot("os.fork, multiprocessing, gunicorn --preload, Celery. The child touches no lock, socket or thread of the parent.")
    return p


def rollback(narrow=False):
    edge, size = (16, (NARROW, 408)) if narrow else (24, (860, 380))
    p = Picture(*size, "The clock goes back by 400 ms: stamps go on above what was issued, wait, or are refused")
    left, bottom, per_ms, scale = (24, 310, 0.165, 0.18) if narrow else (84, 316, 0.36, 0.2)
    at = lambda t, stamp: (left + t * per_ms, bottom - stamp * scale)
    p.text(edge, 32, "The clock goes back by 400 ms", "bold")
    p.line([at(0, 0), at(2100, 0)], "line", 1.5, arrow=True)
    p.line([at(0, 0), at(0, 1330)], "line", 1.5, arrow=True)
    for t in range(300, 2000, 600 if narrow else 300):
        p.text(at(t, 0)[0], bottom + 20, f"{t} ms", "small dim", "middle")
    if not narrow:
        p.text(at(2100, 0)[0], bottom + 20, "real time", "small dim", "end")
    p.line([at(0, 0), at(900, 900), at(900, 500), at(1600, 1200)], "line", 2, dashed=True)
    p.text(at(1620, 0)[0], at(0, 1190)[1], "the clock", "small dim")
    p.line([at(0, 0), at(900, 900)], "issued", 4)
    p.line([at(900, 900), at(1300, 910)], "issued", 4)
    p.line([at(1300, 910), at(1600, 1200)], "issued", 4)
    if narrow:
        p.text(at(40, 0)[0], at(0, 1190)[1], "ahead:1s continues,", "bold small")
        p.text(at(40, 0)[0], at(0, 1100)[1], "just above the last ID", "bold small")
        p.line([at(950, 1120), at(1080, 925)], "line", 1, arrow=True)
        for row, text in enumerate(["error refuses (CLOCK_BACK),", "and wait:D waits, until the", "clock is where it had been"]):
            p.text(at(960, 0)[0], at(0, 400 - 90 * row)[1], text, "small")
    else:
        p.text(at(700, 0)[0], at(0, 1120)[1], "ahead:1s continues, just above the last ID", "bold", "middle")
        p.line([at(900, 1090), at(1080, 925)], "line", 1, arrow=True)
        p.text(at(960, 0)[0], at(0, 430)[1], "error refuses (CLOCK_BACK) and wait:D waits,", "", "start")
        p.text(at(960, 0)[0], at(0, 330)[1], "until the clock is where it had been", "", "start")
    text = "Solid: the stamps of the IDs, with rollback=ahead:1s. No stamp lies more than 1 s ahead of the clock, and none repeats."
    p.wrapped(edge, 356 if narrow else 366, text, 57 if narrow else 140, "small dim")
    return p


PRESETS = [
    ("standard", 41, "1 ms", [("node", 10), ("sequence", 12)]),
    ("twitter", 41, "1 ms", [("datacenter", 5), ("worker", 5), ("sequence", 12)]),
    ("simple", 41, "1 ms", [("worker", 5), ("datacenter", 5), ("sequence", 12)]),
    ("leaf", 41, "1 ms", [("worker", 10), ("sequence", 12)]),
    ("shardingsphere", 41, "1 ms", [("worker", 10), ("sequence", 12)]),
    ("baidu", 28, "1 s", [("worker", 22), ("sequence", 13)]),
    ("sonyflake", 39, "10 ms", [("sequence", 8), ("machine", 16)]),
    ("discord", 41, "1 ms", [("worker", 5), ("process", 5), ("sequence", 12)]),
    ("instagram", 40, "1 ms", [("shard", 13), ("sequence", 10)]),
    ("game", 31, "1 s", [("server", 20), ("sequence", 12)]),
    ("game16", 31, "1 s", [("server", 16), ("sequence", 16)]),
    ("js53", 31, "1 s", [("node", 10), ("sequence", 12)]),
]


def layouts(narrow=False):
    above, row_height, left, bit = (20, 56, 16, 5.8) if narrow else (0, 34, 150, 10.6)
    p = Picture(NARROW if narrow else 860, 52 + row_height * len(PRESETS) + 30 + (18 if narrow else 0), "How the presets split their bits")
    p.text(16 if narrow else 24, 32, "How the presets split 63 bits", "bold")
    for row, (name, time, tick, fields) in enumerate(PRESETS):
        y = 48 + row * row_height + above
        p.text(16 if narrow else 24, y + (-6 if narrow else 19), name, "mono")
        x = left + (63 - time - sum(size for _, size in fields)) * bit
        p.box(x, y, time * bit, 27, "time", f"time {time}, ticks of {tick}", True)
        x += time * bit
        for field, size in fields:
            short = {"datacenter": "dc", "worker": "wrk", "process": "proc"}.get(field, "seq" if field == "sequence" else field)
            label = f"{ {'datacenter': 'dc'}.get(field, field) if size > 8 else short } {size}"
            if narrow:
                label = str(size) if size == 5 else f"{short if size <= 10 or field == 'sequence' else field} {size}"
            p.box(x, y, size * bit, 27, "sequence" if field == "sequence" else "node", label, True)
            x += size * bit
    foot = "js53 leaves the ten highest bits 0, so its IDs are exact JavaScript numbers."
    p.wrapped(16 if narrow else 24, 52 + row_height * len(PRESETS) + 16, foot, 58 if narrow else 99, "small dim")
    return p


def lifetime(narrow=False):
    """Years against the rate of one node: 2^(63 - node bits) IDs for each."""
    p = Picture(
        NARROW if narrow else 860, 470, "How long a layout lasts, against the IDs per second of one node, for several numbers of nodes"
    )
    title = "63 bits are shared out: lifetime x rate x nodes is fixed"
    p.wrapped(16 if narrow else 24, 28 if narrow else 32, title, 40 if narrow else 80, "bold")
    left, top, right, bottom = (84, 66, 330, 410) if narrow else (90, 56, 720, 410)
    year_s = 365.2425 * 86400
    x = lambda rate: left + (math.log10(rate) - 2) / 5.2 * (right - left)
    y = lambda years: bottom - (math.log10(years) - 0.7) / 3.3 * (bottom - top)
    for power in range(2, 8):
        p.line([(x(10**power), top), (x(10**power), bottom)], "grid", 1)
        p.text(x(10**power), bottom + 20, f"{10**power:,}" if not narrow else f"10{'²³⁴⁵⁶⁷'[power - 2]}", "small dim", "middle")
    for years in (10, 30, 100, 300, 1000, 3000):
        p.line([(left, y(years)), (right, y(years))], "grid", 1)
        p.text(left - 8, y(years) + 4, f"{years:,} years", "small dim", "end")
    p.text((left + right) / 2, bottom + 42, "IDs per second and node" + ", sustained (logarithmic)" * (not narrow), "small dim", "middle")
    for node_bits, label in [(5, "32 nodes"), (8, "256"), (10, "1,024"), (13, "8,192"), (16, "65,536"), (20, "1 million")]:
        years = lambda rate, bits=node_bits: 2 ** (63 - bits) / rate / year_s
        points = [(x(10 ** (2 + step / 50)), y(years(10 ** (2 + step / 50)))) for step in range(261)]
        inside = [(px, py) for px, py in points if top <= py <= bottom]
        if len(inside) > 1:
            p.line(inside, "issued", 2)
            end_x, end_y = inside[-1]
            if end_x > right - 5:
                p.text(end_x + 6, end_y + 4, label, "small")
            else:
                p.text(end_x - 5 if narrow else end_x + 4, end_y - 6, label, "small", "end" if narrow else "start")
    for name, time, tick_ms, fields in [
        ("standard", 41, 1, 12), ("game", 31, 1000, 12), ("game16", 31, 1000, 16), ("sonyflake", 39, 10, 8), ("instagram", 40, 1, 10),
    ]:  # fmt: skip
        px, py = x(2**fields * 1000 / tick_ms), y(2**time * tick_ms / 1000 / year_s)
        p.parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" class="node" stroke-width="2"/>')
        beside = narrow and name in ("game16", "instagram")
        p.text(px + 9 if beside else px - 9, py + 8 if beside else py - 8, name, "bold small", "start" if beside else "end")
    return p


def shards(narrow=False):
    """The shards of a slow generator's IDs, for each start policy."""
    counted = json.loads((HERE / "shards.json").read_text())
    policies = counted["policies"]
    columns = 1 if narrow else 2
    edge = 5 if narrow else 24
    p = Picture(
        NARROW if narrow else 860, 92 + 116 * math.ceil(len(policies) / columns), "The share of each of 16 shards, for every start policy"
    )
    title = f"The share of each of {counted['shards']} shards (id % {counted['shards']}), one ID in a tick, {counted['ids']:,} IDs"
    p.wrapped(edge, 24 if narrow else 32, title, 50 if narrow else 120, "bold")
    for place, (policy, counts) in enumerate(policies.items()):
        left, top = edge + (place % columns) * 420, 56 + (place // columns) * 116
        fullest = max(counts) / sum(counts)
        p.text(left, top + 14, f"start={policy}", "mono small")
        p.text(left + 390, top + 14, f"fullest shard: {fullest:.1%}, even would be {1 / len(counts):.1%}", "small dim", "end")
        p.line([(left, top + 88), (left + 390, top + 88)])
        for shard, count in enumerate(counts):
            share = count / sum(counts)
            height = 62 * min(1, share / 0.125)
            if count:
                p.box(left + 4 + shard * 24.2, top + 88 - height, 22, height, "node" if fullest > 0.1 else "time")
    p.text(edge, p.size[1] - 14, "Bars are cut at 12.5 %: twice an even share.", "small dim")
    return p


def fleet(narrow=False):
    """The requests to a store in each second, while a fleet starts, fails and recovers."""
    counted = json.loads((HERE / "fleet.json").read_text())
    stores = {}
    for run in counted["runs"]:
        store, what = run["name"].split(": ")
        stores.setdefault(store, []).append((what, run["requests"]))
    rows = max(len(runs) for runs in stores.values())
    whole = 84 + 112 * rows
    edge = 5 if narrow else 24
    size = (NARROW, whole * len(stores)) if narrow else (860, whole)
    p = Picture(*size, f"Requests a second of the store of {counted['processes']:,} processes")
    for column, (store, runs) in enumerate(stores.items()):
        left, top = (edge, column * whole) if narrow else (edge + column * 420, 0)
        p.text(left, top + 32, f"{store}, {counted['processes']:,} processes", "bold")
        for row, (what, requests) in enumerate(runs):
            bottom, longest, peak = top + 132 + row * 112, len(requests) - 1, max(requests)
            p.text(left, bottom - 76, what, "small")
            p.text(left + 390, bottom - 76, f"at most {peak:,} requests/s", "small dim", "end")
            p.line([(left, bottom), (left + 390, bottom)])
            p.line([(left + 390 * at / longest, bottom - 64 * count / peak) for at, count in enumerate(requests)], "issued")
            p.text(left, bottom + 14, "0", "small dim")
            p.text(left + 390, bottom + 14, f"{longest} s", "small dim", "end")
    p.text(edge, p.size[1] - 12, "Each curve has its own scale.", "small dim")
    return p


COLOURS = """
.good{fill:#1a7f37}
@media (prefers-color-scheme:dark){.good{fill:#6cc072}}
"""
# The seconds for which the whole recording is shown, before it begins again.
READING_S = 8


def demo():
    """README: what `make demo` printed, line by line, as record_demo.py saw it."""
    recorded = json.loads((HERE / "demo.json").read_text())
    lines = [line for _, line in recorded]
    # What happens and the programs' table, without the builds before it and the store's listing after it; then the last line of all.
    begin, end = lines.index("== The programs") + 1, lines.index("The store 1 s before the end:")
    last = next(place for place in range(end, len(lines)) if lines[place].endswith(" 0 duplicates"))
    shown = [("$ make demo", recorded[begin][0]), *((line, at) for at, line in [*recorded[begin:end], recorded[last]])]
    # A terminal of 112 columns. The times that it shows are the real ones; its pauses are shorter.
    rows = [(row, at) for line, at in shown for row in (textwrap.wrap(line, 112, subsequent_indent="  ") or [""])]
    p = Picture(
        860, 64 + 17 * len(rows), "A recording of make demo, shortened: three programs mint at once, one is killed, and no ID repeats"
    )
    for place, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        p.parts.append(f'<circle cx="{28 + 18 * place}" cy="24" r="5.5" fill="{colour}"/>')
    last, clock, times = shown[0][1], 0, []
    for _, at in rows:
        last, clock = at, clock + min(at - last, 1.2) + 0.05
        times.append(clock)
    whole = clock + READING_S
    keyframes = "\n".join(
        f"@keyframes r{place}{{0%,{100 * at / whole:.2f}%{{opacity:0}}{100 * at / whole + 0.01:.2f}%,100%{{opacity:1}}}}"
        f".r{place}{{animation:r{place} {whole:.1f}s infinite}}"
        for place, at in enumerate(times)
    )
    # Without motion, as some readers prefer, all lines are shown at once.
    p.parts.append(f"<style>{COLOURS}@media (prefers-reduced-motion:no-preference){{\n{keyframes}\n}}</style>")
    styles = {"0 duplicates": "bold good", "kill -9": "bold badtext"}
    for place, (row, _) in enumerate(rows):
        style = next((style for end, style in styles.items() if row.endswith(end)), "bold" if row.startswith("$ ") else "")
        p.parts.append(f'<g class="r{place}">')
        p.text(24, 58 + 17 * place, row.replace(" ", "\u00a0"), f"mono small {style}".strip())
        p.parts.append("</g>")
    return p


PICTURES = [overview, demo, bits, window, crash, pause, fork, rollback, layouts, lifetime, shards, fleet]
NARROWED = {"overview": overview_narrow, "bits": bits_narrow} | {
    draw.__name__: functools.partial(draw, narrow=True) for draw in (window, crash, pause, fork, rollback, layouts, lifetime, shards, fleet)
}


def main():
    match sys.argv[1:]:
        case ["--narrow", folder]:
            for name, draw in NARROWED.items():
                (Path(folder) / f"{name}_narrow.svg").write_text(draw().svg())
            return
        case options:
            check = options == ["--check"]
    stale = []
    for draw in PICTURES:
        path, svg = HERE / f"{draw.__name__}.svg", draw().svg()
        if not check:
            path.write_text(svg)
        elif not path.exists() or path.read_text() != svg:
            stale.append(path.name)
    if stale:
        sys.exit(f"{', '.join(stale)}: not what the script draws; run docs/pictures/draw.py")


if __name__ == "__main__":
    main()
