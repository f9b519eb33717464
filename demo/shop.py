"""A shop's back end: threads take orders into SQLite, and every order and order line gets an ID from frazil.

One generator serves all threads. The database sees only integers; the order's ID also contains its time,
so "the orders of the last second" is a range of the primary key.
"""

import argparse
import json
import random
import sqlite3
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import frazil

SCHEMA = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL) STRICT;
CREATE TABLE order_lines (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    article TEXT NOT NULL,
    quantity INTEGER NOT NULL
) STRICT;
"""
ARTICLES = ["tea", "coffee", "sugar", "salt", "rice", "flour", "beans", "honey"]
CLERKS = 4


def connect(path):
    """A connection of one thread; others may write at the same time."""
    shop = sqlite3.connect(path, timeout=30, isolation_level=None)
    shop.execute("PRAGMA journal_mode = WAL")
    shop.execute("PRAGMA synchronous = NORMAL")
    shop.execute("PRAGMA foreign_keys = ON")
    return shop


def place_order(shop, ids, customer, basket):
    """Writes an order and its lines in one transaction, and returns the IDs they got."""
    order, lines = ids.next(), ids.batch(len(basket))
    shop.execute("BEGIN IMMEDIATE")
    shop.execute("INSERT INTO orders VALUES (?, ?)", (order, customer))
    rows = [(line, order, article, quantity) for line, (article, quantity) in zip(lines, basket)]
    shop.executemany("INSERT INTO order_lines VALUES (?, ?, ?, ?)", rows)
    shop.execute("COMMIT")
    return [order, *lines]


def serve(path, ids, until, minted):
    """Takes orders until the shop closes."""
    shop = connect(path)
    while time.monotonic() < until:
        basket = [(article, random.randint(1, 9)) for article in random.sample(ARTICLES, random.randint(1, 5))]
        minted += place_order(shop, ids, random.randint(1, 1000), basket)
    shop.close()


def orders_since(shop, layout, instant):
    """The number of orders since an instant: no column for the time, no index on it."""
    (count,) = shop.execute("SELECT count(*) FROM orders WHERE id >= ?", (layout.min_id(instant),)).fetchone()
    return count


def main():
    """Runs the shop and prints what it did as one line of JSON."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=4.0, help="how long the shop is open")
    arguments.add_argument("--out", type=Path, required=True, help="the file for the IDs, one decimal on each line")
    options = arguments.parse_args()

    with frazil.Snowflake("standard", store="local") as ids, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        shop = connect(path)
        shop.executescript(SCHEMA)

        opened = time.monotonic()
        minted = [[] for _ in range(CLERKS)]
        clerks = [threading.Thread(target=serve, args=(path, ids, opened + options.seconds, mine)) for mine in minted]
        for clerk in clerks:
            clerk.start()
        for clerk in clerks:
            clerk.join()
        seconds = time.monotonic() - opened

        (orders,) = shop.execute("SELECT count(*) FROM orders").fetchone()
        (lines,) = shop.execute("SELECT count(*) FROM order_lines").fetchone()
        recent = orders_since(shop, ids.layout, datetime.now(UTC) - timedelta(seconds=1))
        spec = ids.spec
        shop.close()

    with options.out.open("w") as out:
        out.writelines(f"{id}\n" for mine in minted for id in mine)
    report = {
        "language": "Python",
        "program": "shop",
        "spec": spec,
        "count": sum(map(len, minted)),
        "seconds": round(seconds, 3),
        "note": f"{orders} orders with {lines} lines in SQLite by {CLERKS} threads; {recent} orders in the last second",
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
