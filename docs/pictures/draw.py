"""Draws the guide's pictures: docs/pictures/draw.py [--check]. They need no package, and the same script gives the same files.

Each picture is a card with a background of its own, so that it can be read on a light and on a dark page. `shards.json` is what
measure_shards.py has counted, `demo.json` what record_demo.py has recorded, and `fleet.json` what `bench/fleet/run.sh simulation` has.
"""

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


def overview():
    """Contents: programs lease numbers from a store, and put them between the time and a counter."""
    p = Picture(860, 330, "Three processes lease node numbers from one store, and mint IDs of time, node number and sequence")
    p.box(24, 24, 812, 46, "box")
    p.text(40, 52, "Your store", "bold")
    p.text(132, 52, "remembers node numbers: a folder, Redis, PostgreSQL, MariaDB/MySQL, etcd, ZooKeeper", "dim")
    for number, (name, node, color_x) in enumerate([("Python worker", 3, 24), ("Node API", 17, 304), ("C++ game server", 42, 584)]):
        x = color_x
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


def bits():
    """The bits of one ID, taken apart."""
    identity, time, node, sequence = 250318245867245581, 59680520502, 885, 13
    assert identity == time << 22 | node << 12 | sequence, (time, node, sequence)
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
    p.text(24, 212, "The top bit is 0, so the ID is a positive BIGINT. Time stands on top, so IDs sort by time.", "dim")
    return p


def window():
    """The window protocol: IDs below a staircase."""
    p = Picture(
        860, 500, "The window protocol: a process writes its bound to the store before it issues IDs, and the next owner starts above it"
    )
    left, bottom, per_s, per_t = 84, 410, 5.6, 2.2
    at = lambda t, stamp: (left + t * per_s, bottom - stamp * per_t)
    p.line([at(0, 0), at(132, 0)], "line", 1.5, arrow=True)
    p.line([at(0, 0), at(0, 160)], "line", 1.5, arrow=True)
    for t in range(20, 130, 20):
        p.line([at(t, 0), at(t, 150)], "grid", 1)
        p.text(at(t, 0)[0], bottom + 20, f"{t} s", "small dim", "middle")
    p.text(at(132, 0)[0], bottom + 42, "real time", "small dim", "end")
    p.text(24, 36, "stamps of the IDs of node 5", "small dim")
    p.line([at(0, 0), at(25, 25)], "issued", 4)
    p.line([at(0, 60), at(10, 60), at(10, 70), at(20, 70), at(20, 80), at(80, 80)], "bound", 2.5)
    p.line([at(0, 60), at(0, 0)], "bound", 1, dashed=True)
    p.text(at(1, 0)[0], at(0, 52)[1], "first bound: 60 s", "small boundtext")
    p.text(at(21, 0)[0], at(0, 71)[1], "each renewal moves it by 10 s", "small boundtext")
    p.text(at(24, 0)[0], at(0, 84)[1], "bound 80 s stays in the store", "small boundtext")
    p.cross(*at(25, 25))
    p.text(at(27, 0)[0], at(0, 22)[1], "process A crashes at 25 s", "badtext")
    p.line([at(25, 25), at(80, 80)], "grid", 2, dashed=True)
    p.line([at(81, 81), at(126, 126)], "issued", 4)
    p.line([at(81, 141), at(91, 141), at(91, 151), at(101, 151)], "bound", 2.5)
    p.text(at(79, 0)[0], at(0, 140)[1], "B's first bound", "small boundtext", "end")
    p.text(at(97, 0)[0], at(0, 84)[1], "process B takes node 5", "bold")
    p.text(at(97, 0)[0], at(0, 76)[1], "and starts above 80 s", "")
    p.text(at(2, 0)[0] + 52, at(0, 6)[1], "A issues IDs", "small")
    p.text(24, 468, "window=60s renew=10s. A moves its bound in the store before it issues IDs up to it, and never passes it.", "small dim")
    p.text(24, 486, "B starts above it. So the IDs of two owners cannot meet, whatever their clocks say.", "small dim")
    return p


class Lanes(Picture):
    """Processes as lanes over time."""

    def __init__(self, height, title, seconds, every):
        super().__init__(860, height, title)
        self.per_s, self.floor = 640 / seconds, height - 56
        for t in range(0, seconds + 1, every):
            self.line([(self.x(t), 48), (self.x(t), self.floor)], "grid", 1)
            self.text(self.x(t), self.floor + 18, f"{t} s", "small dim", "middle")
        self.text(24, 32, title, "bold")

    def x(self, t):
        return 190 + t * self.per_s

    def lane(self, row, name, *bars):
        y = 58 + row * 44
        self.text(24, y + 20, name)
        for start, end, style, label in bars:
            self.box(self.x(start), y, (end - start) * self.per_s, 30, style, label, True)
        return y + 15

    def bound(self, t, label, rows):
        self.line([(self.x(t), 52), (self.x(t), 58 + rows * 44 - 8)], "bound", 2, dashed=True)
        self.text(self.x(t) + 6, 56, label, "small boundtext")

    def foot(self, text):
        self.text(24, self.size[1] - 12, text, "small dim")


def crash():
    p = Lanes(250, "A crash: the number waits for its bound, the program does not", 100, 20)
    y = p.lane(0, "A", (0, 25, "time", "node 5"))
    p.cross(p.x(25), y)
    p.lane(1, "B, any number", (27, 100, "node", "node 9, at once"))
    p.lane(2, "C, wants node 5", (27, 80, "wait", ""), (80, 100, "time", "node 5"))
    p.bound(80, "A's bound", 3)
    p.foot("window=60s: A's last renewal was at 20 s, so its bound is 80 s. Hatched: open() waits.")
    return p


def pause():
    p = Lanes(250, "A pause: the old owner wakes up behind its bound, and cannot issue", 120, 20)
    p.lane(0, "A", (0, 15, "time", "node 5"), (15, 96, "wait", ""), (97, 120, "node", "node 9"))
    p.lane(1, "B, wants node 5", (22, 70, "wait", ""), (70, 120, "time", "node 5"))
    p.bound(70, "A's bound", 2)
    p.text(p.x(96), 58 + 44 + 50, "A wakes up, sees 96 s > 70 s, asks the", "small", "middle")
    p.text(p.x(96), 58 + 44 + 66, "store, and leases another number", "small", "middle")
    p.foot("A was stopped from 15 s to 96 s: a virtual machine that was suspended, SIGSTOP, a debugger.")
    return p


def fork():
    p = Lanes(250, "A fork: the child never mints with its parent's number", 100, 20)
    p.lane(0, "parent", (0, 100, "time", "node 5"))
    p.lane(1, "child, leased", (40, 46, "wait", ""), (46, 100, "node", "node 9, leased on first use"))
    p.lane(2, "child, by hand", (40, 100, "box", "each call is refused: FORKED"))
    p.line([(p.x(36), 58 + 15), (p.x(36), 58 + 2 * 44 + 15)], "line", 1.5)
    for row in (1, 2):
        p.line([(p.x(36), 58 + row * 44 + 15), (p.x(40) - 1, 58 + row * 44 + 15)], "line", 1.5, arrow=True)
    p.foot("os.fork, multiprocessing, gunicorn --preload, Celery. The child touches no lock, socket or thread of the parent.")
    return p


def rollback():
    p = Picture(860, 380, "The clock goes back by 400 ms: stamps go on above what was issued, wait, or are refused")
    left, bottom, scale = 84, 316, 0.2
    at = lambda t, stamp: (left + t * 0.36, bottom - stamp * scale)
    p.text(24, 32, "The clock goes back by 400 ms", "bold")
    p.line([at(0, 0), at(2100, 0)], "line", 1.5, arrow=True)
    p.line([at(0, 0), at(0, 1330)], "line", 1.5, arrow=True)
    for t in range(300, 2000, 300):
        p.text(at(t, 0)[0], bottom + 20, f"{t} ms", "small dim", "middle")
    p.text(at(2100, 0)[0], bottom + 20, "real time", "small dim", "end")
    p.line([at(0, 0), at(900, 900), at(900, 500), at(1600, 1200)], "line", 2, dashed=True)
    p.text(at(1620, 0)[0], at(0, 1190)[1], "the clock", "small dim")
    p.line([at(0, 0), at(900, 900)], "issued", 4)
    p.line([at(900, 900), at(1300, 910)], "issued", 4)
    p.line([at(1300, 910), at(1600, 1200)], "issued", 4)
    p.text(at(700, 0)[0], at(0, 1120)[1], "ahead:1s goes on, just above the last ID", "bold", "middle")
    p.line([at(900, 1090), at(1080, 925)], "line", 1, arrow=True)
    p.text(at(960, 0)[0], at(0, 430)[1], "error refuses (CLOCK_BACK) and wait:D waits,", "", "start")
    p.text(at(960, 0)[0], at(0, 330)[1], "until the clock is where it had been", "", "start")
    p.text(
        24,
        366,
        "Solid: the stamps of the IDs, with rollback=ahead:1s. No stamp lies more than 1 s ahead of the clock, and none repeats.",
        "small dim",
    )
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


def layouts():
    p = Picture(860, 52 + 34 * len(PRESETS) + 30, "How the presets split their bits")
    p.text(24, 32, "How the presets split 63 bits", "bold")
    bit = 10.6
    for row, (name, time, tick, fields) in enumerate(PRESETS):
        y = 48 + row * 34
        p.text(24, y + 19, name, "mono")
        x = 150 + (63 - time - sum(size for _, size in fields)) * bit
        p.box(x, y, time * bit, 27, "time", f"time {time}, ticks of {tick}", True)
        x += time * bit
        for field, size in fields:
            label = (
                {"datacenter": "dc"}.get(field, field)
                if size > 8
                else {"datacenter": "dc", "worker": "wrk", "process": "proc"}.get(field, "seq")
            )
            p.box(x, y, size * bit, 27, "sequence" if field == "sequence" else "node", f"{label} {size}", True)
            x += size * bit
    p.text(24, 52 + 34 * len(PRESETS) + 16, "js53 leaves the ten highest bits 0, so its IDs are exact JavaScript numbers.", "small dim")
    return p


def lifetime():
    """Years against the rate of one node: 2^(63 - node bits) IDs for each."""
    p = Picture(860, 470, "How long a layout lasts, against the IDs per second of one node, for several numbers of nodes")
    p.text(24, 32, "63 bits are shared out: lifetime x rate x nodes is fixed", "bold")
    left, top, right, bottom = 90, 56, 720, 410
    year_s = 365.2425 * 86400
    x = lambda rate: left + (math.log10(rate) - 2) / 5.2 * (right - left)
    y = lambda years: bottom - (math.log10(years) - 0.7) / 3.3 * (bottom - top)
    for power in range(2, 8):
        p.line([(x(10**power), top), (x(10**power), bottom)], "grid", 1)
        p.text(x(10**power), bottom + 20, f"{10**power:,}", "small dim", "middle")
    for years in (10, 30, 100, 300, 1000, 3000):
        p.line([(left, y(years)), (right, y(years))], "grid", 1)
        p.text(left - 8, y(years) + 4, f"{years:,} years", "small dim", "end")
    p.text((left + right) / 2, bottom + 42, "IDs per second and node, sustained (logarithmic)", "small dim", "middle")
    for node_bits, label in [(5, "32 nodes"), (8, "256"), (10, "1,024"), (13, "8,192"), (16, "65,536"), (20, "1 million")]:
        years = lambda rate, bits=node_bits: 2 ** (63 - bits) / rate / year_s
        points = [(x(10 ** (2 + step / 50)), y(years(10 ** (2 + step / 50)))) for step in range(261)]
        inside = [(px, py) for px, py in points if top <= py <= bottom]
        if len(inside) > 1:
            p.line(inside, "issued", 2)
            p.text(
                inside[-1][0] + 6 if inside[-1][0] > right - 5 else inside[-1][0] + 4,
                inside[-1][1] + (4 if inside[-1][0] > right - 5 else -6),
                label,
                "small",
            )
    for name, time, tick_ms, fields in [
        ("standard", 41, 1, 12), ("game", 31, 1000, 12), ("game16", 31, 1000, 16), ("sonyflake", 39, 10, 8), ("instagram", 40, 1, 10),
    ]:  # fmt: skip
        px, py = x(2**fields * 1000 / tick_ms), y(2**time * tick_ms / 1000 / year_s)
        p.parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" class="node" stroke-width="2"/>')
        p.text(px - 9, py - 8, name, "bold small", "end")
    return p


def shards():
    """The shards of a slow generator's IDs, for each start policy."""
    counted = json.loads((HERE / "shards.json").read_text())
    policies = counted["policies"]
    p = Picture(860, 92 + 116 * ((len(policies) + 1) // 2), "The share of each of 16 shards, for every start policy")
    p.text(
        24,
        32,
        f"The share of each of {counted['shards']} shards (id % {counted['shards']}), one ID in a tick, {counted['ids']:,} IDs",
        "bold",
    )
    for place, (policy, counts) in enumerate(policies.items()):
        left, top = 24 + (place % 2) * 420, 56 + (place // 2) * 116
        fullest = max(counts) / sum(counts)
        p.text(left, top + 14, f"start={policy}", "mono small")
        p.text(left + 390, top + 14, f"fullest shard: {fullest:.1%}, even would be {1 / len(counts):.1%}", "small dim", "end")
        p.line([(left, top + 88), (left + 390, top + 88)])
        for shard, count in enumerate(counts):
            share = count / sum(counts)
            height = 62 * min(1, share / 0.125)
            if count:
                p.box(left + 4 + shard * 24.2, top + 88 - height, 22, height, "node" if fullest > 0.1 else "time")
    p.text(24, p.size[1] - 14, "Bars are cut at 12.5 %: twice an even share.", "small dim")
    return p


def fleet():
    """The requests of a store in each second, through what happens to a fleet."""
    counted = json.loads((HERE / "fleet.json").read_text())
    stores = {}
    for run in counted["runs"]:
        store, what = run["name"].split(": ")
        stores.setdefault(store, []).append((what, run["requests"]))
    rows = max(len(runs) for runs in stores.values())
    p = Picture(860, 84 + 112 * rows, f"Requests a second of the store of {counted['processes']:,} processes")
    for column, (store, runs) in enumerate(stores.items()):
        left = 24 + column * 420
        p.text(left, 32, f"{store}, {counted['processes']:,} processes", "bold")
        for row, (what, requests) in enumerate(runs):
            bottom, longest, peak = 132 + row * 112, len(requests) - 1, max(requests)
            p.text(left, bottom - 76, what, "small")
            p.text(left + 390, bottom - 76, f"at most {peak:,} requests/s", "small dim", "end")
            p.line([(left, bottom), (left + 390, bottom)])
            p.line([(left + 390 * at / longest, bottom - 64 * count / peak) for at, count in enumerate(requests)], "issued")
            p.text(left, bottom + 14, "0", "small dim")
            p.text(left + 390, bottom + 14, f"{longest} s", "small dim", "end")
    p.text(24, p.size[1] - 12, "Each curve has its own scale.", "small dim")
    return p


TYPING = """
.good{fill:#1a7f37}
@media (prefers-color-scheme:dark){.good{fill:#6cc072}}
@keyframes typed{from{opacity:.15}to{opacity:1}}
@media (prefers-reduced-motion:no-preference){.typed{animation:typed .01s both}}
"""


def demo():
    """README: what `make demo` printed, line by line, as record_demo.py saw it."""
    recorded = json.loads((HERE / "demo.json").read_text())
    lines = [line for _, line in recorded]
    # What the programs print, without the builds before and the times after it, and without the second listing of numbers.
    begin, end = lines.index("== The programs") + 1, lines.index("== Times") - 1
    second = lines.index("$ frazil nodes local --namespace items")
    after = next(place for place in range(second, end) if lines[place].startswith("shop: "))
    shown = [("$ make demo", recorded[begin][0]), *((line, at) for at, line in [*recorded[begin:second], *recorded[after:end]])]
    # A terminal of 112 columns. The times are the real ones, but nobody waits for long.
    rows = [(row, at) for line, at in shown for row in (textwrap.wrap(line, 112, subsequent_indent="  ") or [""])]
    p = Picture(860, 64 + 17 * len(rows), "A recording of make demo: three programs mint at once, one is killed, and no ID repeats")
    p.parts.append(f"<style>{TYPING}</style>")
    for place, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        p.parts.append(f'<circle cx="{28 + 18 * place}" cy="24" r="5.5" fill="{colour}"/>')
    told, clock = shown[0][1], 0
    for place, (row, at) in enumerate(rows):
        told, clock = at, clock + min(at - told, 2) + 0.05
        good = "bold good" if row.endswith("0 duplicates") else "bold" if row.startswith("$ ") else ""
        p.parts.append(f'<g class="typed" style="animation-delay:{clock:.2f}s">')
        p.text(24, 58 + 17 * place, row.replace(" ", "\u00a0"), f"mono small {good}".strip())
        p.parts.append("</g>")
    return p


PICTURES = [overview, demo, bits, window, crash, pause, fork, rollback, layouts, lifetime, shards, fleet]


def main():
    check = sys.argv[1:] == ["--check"]
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
