"""The cost of a row by its key: frazil's IDs beside the database's own sequence and beside UUIDs of version 7, in inserts of 1,000 rows.

Every number is the median of rounds that take turns, each with a transaction that is on disk when it ends. A row's key is made
within the measured time.
"""

import itertools
import json
import os
import statistics
import time
from pathlib import Path

import frazil
import sqlalchemy as sa

ROWS = 1000
QUICK = bool(os.environ.get("FRAZIL_BENCH_QUICK"))
ROUNDS = 11 if QUICK else 61
FILLED = 50_000 if QUICK else 200_000
SERVERS = {
    "PostgreSQL": os.environ["FRAZIL_TEST_POSTGRESQL"].replace("postgresql://", "postgresql+psycopg://"),
    "MariaDB": os.environ["FRAZIL_TEST_MARIADB"].replace("mysql://", "mariadb+pymysql://"),
}
OWN = {"PostgreSQL": "IDENTITY", "MariaDB": "AUTO_INCREMENT"}

ids = frazil.Snowflake("standard", node=1)
names = itertools.cycle([f"item {n}" for n in range(100)])


class Case:
    """A table with a key of one kind, and a way to insert into it."""

    def __init__(self, engine, number, name, key, rows, returning=False, sized=False):
        self.engine, self.name, self.rows, self.sized, self.samples = engine, name, rows, sized, []
        self.table = sa.Table(
            f"bench_{number}", sa.MetaData(), key, sa.Column("name", sa.String(50), index=True), sa.Column("amount", sa.Integer)
        )
        self.statement = sa.insert(self.table)
        if returning:
            self.statement = self.statement.returning(self.table.c.id, sort_by_parameter_order=True)
        self.table.create(engine)

    def run(self):
        """Inserts once, and returns the keys of the rows to the program if the case says so."""
        start = time.perf_counter_ns()
        with self.engine.begin() as connection:
            result = connection.execute(self.statement, self.rows())
            known = result.scalars().all() if result.returns_rows else [None] * ROWS
        self.samples.append((time.perf_counter_ns() - start) / ROWS)
        assert len(known) == ROWS

    def megabytes(self):
        """The size of a million rows: the key's index, and the table with both indexes; from FILLED rows."""
        with self.engine.begin() as connection:
            connection.execute(sa.text(f"{'TRUNCATE TABLE' if self.engine.name == 'mariadb' else 'TRUNCATE'} {self.table}"))
            for _ in range(FILLED // ROWS):
                connection.execute(self.statement, self.rows())
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if self.engine.name == "mariadb":
                # The rows are stored in the key's index.
                connection.execute(sa.text(f"ANALYZE TABLE {self.table}")).all()
                query = f"SELECT data_length, data_length + index_length FROM information_schema.tables WHERE table_name = '{self.table}'"
            else:
                query = f"SELECT pg_relation_size('{self.table}_pkey'), pg_total_relation_size('{self.table}')"
            sizes = connection.execute(sa.text(query)).one()
        return [size / FILLED for size in sizes]


def row(**key):
    return {"name": next(names), "amount": 1, **key}


def cases(server, engine):
    """Everything that is compared on a server."""
    big, own = sa.BigInteger, OWN[server]

    def plain():
        return [row() for _ in range(ROWS)]

    def identity():
        return sa.Column("id", big, sa.Identity() if engine.name == "postgresql" else None, primary_key=True, autoincrement=True)

    yield Case(
        engine, 1, "frazil: `ids.batch(1000)`, known before", sa.Column("id", big, primary_key=True, autoincrement=False), batch, sized=True
    )
    by_default = sa.Column("id", big, primary_key=True, autoincrement=False, default=ids.next)
    yield Case(engine, 2, "frazil: `default=ids.next`", by_default, plain)
    yield Case(engine, 3, f"{own}, fetched by RETURNING", identity(), plain, returning=True, sized=True)
    yield Case(engine, 4, f"{own}, not fetched: the program does not know the keys", identity(), plain)
    yield Case(engine, 5, "UUID 7: `frazil.uuid.uuid7()`, known before", sa.Column("id", sa.Uuid, primary_key=True), uuids, sized=True)


def batch():
    return [row(id=key) for key in ids.batch(ROWS)]


def uuids():
    return [row(id=frazil.uuid.uuid7()) for _ in range(ROWS)]


def compare(server, url):
    """Prints the table of a server, and returns the costs."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        version = ".".join(map(str, connection.dialect.server_version_info))
    compared = list(cases(server, engine))
    # Connections, prepared statements and caches are warm.
    for case in compared * 2:
        case.run()
        case.samples.clear()
    for _ in range(ROUNDS):
        for case in compared:
            case.run()
    print(
        f"## {server} {version}: a row, in inserts of {ROWS:,} by SQLAlchemy {sa.__version__}; medians of {ROUNDS} rounds that take turns\n"
    )
    print("| key | us per row | of the first | MB a million rows: key's index | MB: all |\n|---|---:|---:|---:|---:|")
    records = []
    for case in compared:
        cost = statistics.median(case.samples)
        ratio = statistics.median(own / first for own, first in zip(case.samples, compared[0].samples, strict=True))
        sizes = " | ".join(f"{size:.0f}" for size in case.megabytes()) if case.sized else " | "
        print(f"| {case.name} | {cost / 1000:.2f} | {ratio:.2f} | {sizes} |")
        records.append({"case": f"{case.name} ({server})", "ns": round(cost, 1)})
    print()
    engine.dispose()
    return records


def main():
    records = [record for server, url in SERVERS.items() for record in compare(server, url)]
    print(
        "Nobody asks the database for an ID that frazil made, so its rows need no RETURNING, and rows that refer to them can be sent at once."
        " The index of a key of 8 bytes is smaller than that of 16. In MariaDB the rows lie in the key's index, and every other index"
        " holds the key once more."
    )
    if path := os.environ.get("FRAZIL_BENCH_JSON"):
        Path(path).write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
