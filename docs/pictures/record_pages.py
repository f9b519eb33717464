"""Takes the guide's screenshots, each in light and dark: an example with four worker processes, and the report of an audit of two databases.

usage, after python/build.sh: .venv/bin/python docs/pictures/record_pages.py [board | audit]...
"""

import datetime
import itertools
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import frazil

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import servers
from examples.browser import Browser, Page
from examples.client import Client
from servers import process

from examples import application

TALK = [
    ("Bank holiday", "Mira", "Who is on call on Monday?"),
    ("Bank holiday", "Tomás", "I am, until noon. Then Aiko."),
    ("Release 4.2", "Aiko", "The migration ran in 3 minutes, without a lock."),
    ("Release 4.2", "Mira", "And the new replicas?"),
    ("Release 4.2", "Aiko", "Four more pods, four more node numbers."),
    ("Bank holiday", "Tomás", "Then I take Tuesday, too."),
    ("Release 4.2", "Jonas", "Is the order service's ID still a string in the JSON?"),
    ("Release 4.2", "Aiko", "Yes. The page never sees a number."),
]


class Still(Page):
    """A page that loads nothing by scripts."""

    def ready(self, answers=0):
        """Waits until the page has loaded."""
        assert process.await_true(lambda: self.evaluate("document.readyState") == "complete", 60)


def shots(page, name, width, height):
    for scheme, end in (("light", ""), ("dark", "_dark")):
        page.shot(HERE / f"{name}{end}.png", width, height, scheme)


def one_of_each_worker(running):
    """A client for each of the four workers, found by opening connections."""
    found = {}
    while len(found) < 4:
        client = Client(running, turns=1000)
        client.ask("GET", "/api/topics")
        worker = running.worker_of(client.connection.sock)
        if found.setdefault(worker, client) is not client:
            client.close()
    return list(found.values())


def board(browser):
    """The message board in FastAPI, after a short talk that all four workers have written down."""
    example = application.Example("fastapi")
    example.prepare()
    with servers.start("postgresql") as database, example.start(database.url, WORKERS="4") as running:
        topics = {}
        for (title, author, text), client in zip(TALK, itertools.cycle(one_of_each_worker(running)), strict=False):
            if title not in topics:
                topics[title] = client.ask("POST", "/api/topics", {"title": title})["id"]
            client.ask("POST", "/api/messages", {"topic": topics[title], "author": author, "text": text})
        page = browser.open(running.url)
        page.click("#messages > li:nth-child(2) a.id")
        page.evaluate("scrollTo(0, 0)")
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        shots(page, "board", 960, 830)


def played(server, first, days, seed):
    """IDs of a game server: each evening has its number of players, and each of them finds some items."""
    ids = frazil.Snowflake("game", server=server, clock="manual", detached=True, start="zero", lag="0ms")
    chance = random.Random(seed)
    minted = []
    for day in range(first, first + days):
        evening = datetime.datetime(2026, 3, 1, 16, tzinfo=datetime.UTC) + datetime.timedelta(days=day)
        weekend = evening.weekday() >= 5
        finds = sorted(chance.randrange(6 * 3600) for _ in range(chance.randrange(300, 500) * (2 if weekend else 1)))
        for second in finds:
            ids.set_time(evening + datetime.timedelta(seconds=second))
            minted.append(ids.next())
    return minted


def audit(browser):
    """The report on two databases: for a week a server of one had the number of a server of the other."""
    worlds = {"eu.txt": [(1, 0, 60, 1), (2, 0, 60, 2)], "us.txt": [(3, 0, 60, 3), (2, 40, 7, 4)]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, servers_of_it in worlds.items():
            minted = sorted(id for server in servers_of_it for id in played(*server))
            (folder / file).write_text("".join(f"{id}\n" for id in minted))
        command = [sys.executable, "-m", "frazil", "merge-audit", "game", *worlds]
        done = subprocess.run(command, cwd=folder, check=False)
        assert done.returncode == 3, "the audit has no findings"
        page = Still(browser, (folder / "merge-audit/report.html").as_uri(), "")
        page.shot(folder / "first.png", 820, 600, "light")
        height = page.evaluate("Math.ceil(document.querySelectorAll('svg')[1].getBoundingClientRect().bottom) + 12")
        shots(page, "audit", 820, height)


RECORDED = {"board": board, "audit": audit}


def main(names):
    if unknown := set(names) - set(RECORDED):
        sys.exit(f"{__doc__}\nUnknown picture: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        for name in names or RECORDED:
            RECORDED[name](browser)


if __name__ == "__main__":
    main(sys.argv[1:])
