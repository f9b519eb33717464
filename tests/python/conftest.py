"""Shared parts of all tests. The tests use the wheel that python/build.sh has installed in .venv."""

import itertools
import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import frazil
import pytest

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STANDARD_EPOCH_MS = 1735689600000

# Each of pytest's processes has its own numbers, and tests that write theirs have others: below 100, and from 900.
_nodes = itertools.count(100 + 200 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]))
_namespaces = itertools.count(1)


def vectors(name):
    """Returns a file of cases that every language reads."""
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def at(unix_ms):
    """Converts Unix milliseconds to an aware datetime."""
    return EPOCH + timedelta(milliseconds=unix_ms)


def open_manual(line="standard node=1", unix_ms=STANDARD_EPOCH_MS, **options):
    """Opens a generator with its own state, whose clock shows an instant."""
    ids = frazil.Snowflake(line, clock="manual", detached=True, **options)
    if unix_ms is not None:
        ids.set_time(at(unix_ms))
    return ids


def ascends(numbers):
    """Returns whether each number is above the one before it."""
    return all(a < b for a, b in itertools.pairwise(numbers))


@pytest.fixture
def node():
    """A node number that no other test uses."""
    return next(_nodes)


@pytest.fixture
def namespace(request):
    """A namespace of store=memory that no other test uses."""
    return f"{re.sub('[^A-Za-z0-9_]', '-', request.node.name)}-{next(_namespaces)}"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """Removes the shell's FRAZIL from the environment."""
    monkeypatch.delenv("FRAZIL", raising=False)
