"""Django with the project in django_project/: its databases and its processes."""

import atexit
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).with_name("django_project")
FOLDER = tempfile.mkdtemp(prefix="frazil-django-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
ALIASES = {"sqlite": "default", "postgresql": "postgresql", "mariadb": "mariadb"}

os.environ |= {"SHOP_FOLDER": FOLDER, "DJANGO_SETTINGS_MODULE": "project.settings"}
os.environ.pop("SHOP_FRAZIL", None)
sys.path.insert(0, str(PROJECT))

import django

django.setup()

from django.core.management import call_command
from django.db import connections
from django.test.utils import CaptureQueriesContext
from project import routing


def migrate():
    """Makes the tables in every database."""
    for alias in ALIASES.values():
        routing.alias = alias
        call_command("migrate", database=alias, verbosity=0)


@contextlib.contextmanager
def statements():
    """Records the statements that the block sends to the current database, except those of transactions."""
    sent = []
    with CaptureQueriesContext(connections[routing.alias]) as queries:
        yield sent
    sent += [query["sql"] for query in queries if not re.match(r"SAVEPOINT|RELEASE|ROLLBACK|BEGIN|COMMIT", query["sql"])]


def manage(*arguments, **environment):
    """Runs manage.py, which must succeed, and returns its output."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        check=False, cwd=PROJECT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "SHOP_ALIAS": routing.alias, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
