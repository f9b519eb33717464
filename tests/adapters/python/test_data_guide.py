"""docs/python-data.md as a new user follows it: every block, in order, in an empty folder."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def blocks_of(page):
    return re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


BLOCKS = blocks_of("docs/python-data.md")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the guide names."""
    for variable in [name for name in os.environ if name.startswith("FRAZIL_") and "TEST" not in name]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FRAZIL", f"standard store={os.environ['FRAZIL_TEST_POSTGRESQL']}")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for _, code in BLOCKS:
        if name := re.match(r"# (\w+\.py)\n", code):
            (tmp_path / name[1]).write_text(code)
    return tmp_path


@contextlib.contextmanager
def serving(folder, command):
    """Runs the guide's command on a reserved port, which the server can bind because it uses SO_REUSEADDR."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = held.getsockname()[1]
        server = subprocess.Popen(command.replace("8000", str(port)).split(), cwd=folder, stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 120
            while server.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                time.sleep(0.05)
            yield port
        finally:
            server.terminate()
            said = server.communicate(timeout=60)[1]
        assert "Application shutdown complete" in said, said


def test_the_first_five_minutes(folder):
    install, serve, ask = [code for language, code in BLOCKS if language == "sh"]
    assert install.startswith("pip install 'frazil[sqlalchemy,pydantic]' fastapi uvicorn")
    with serving(folder, serve) as port:
        result = subprocess.run(["sh", "-ec", ask.replace("8000", str(port))], check=True, capture_output=True, text=True, timeout=60)
        order = json.loads(result.stdout)
        assert order.keys() == {"item", "replaces_id", "id"} and re.fullmatch(r"\d{17,19}", order["id"])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/orders/{order['id']}") as answer:
            assert json.load(answer) == order
        result = subprocess.run(
            ["sh", "-ec", ask.replace("8000", str(port)).replace('"lamp"', f'"bulb", "replaces_id": "{order["id"]}"')],
            check=True, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert json.loads(result.stdout)["replaces_id"] == order["id"]
        with pytest.raises(urllib.error.HTTPError, match="422"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/orders/1e18")


def test_the_application_of_the_readme(folder):
    [code] = [code for language, code in blocks_of("README.md") if language == "py"]
    [commands] = [code for language, code in blocks_of("README.md") if language == "sh" and "uvicorn" in code]
    name = re.match(r"# (\w+)\.py\n", code)[1]
    (folder / f"{name}.py").write_text(code)
    _, serve, ask, shown = commands.splitlines()
    assert serve == f"uvicorn {name}:app"
    with serving(folder, f"{serve} --port 8000") as port:
        result = subprocess.run(["sh", "-ec", ask.replace("8000", str(port))], check=True, capture_output=True, text=True, timeout=60)
    assert re.sub(r"\d{18,19}", "ID", result.stdout) == re.sub(r"\d{18,19}", "ID", shown.removeprefix("# "))


def test_in_production(folder):
    with serving(folder, "uvicorn server:app --port 8000") as port:
        made = set()
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/new") as answer:
                made.add(json.load(answer))
    assert len(made) == 3 and all(isinstance(id, str) for id in made)
    listed = subprocess.run(
        ["frazil", "nodes", os.environ["FRAZIL_TEST_POSTGRESQL"]], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert "0 of 1024 node numbers held" in listed, "the number was released"


def test_all_other_blocks_in_their_order(folder):
    blocks = [code for language, code in BLOCKS if language == "py" and not re.match(r"# \w+\.py\n", code)]
    assert len(blocks) > 8 and {language for language, _ in BLOCKS} == {"sh", "py"}
    (folder / "guide.py").write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, "guide.py"], check=False, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2000 [] 20" in done.stdout and "datetime64[ms, UTC]" in done.stdout


def test_tortoise(folder):
    pytest.importorskip("tortoise")
    command = [sys.executable, "tortoise_shop.py"]
    printed = subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True, timeout=60).stdout
    books = [json.loads(line) for line in printed.splitlines()]
    assert len({book["id"] for book in books}) == 3
    assert len({book["author_id"] for book in books}) == 1
    # The page warns of this failure: the database numbers both keys.
    program = (folder / "tortoise_shop.py").read_text()
    counted = (
        program.replace("generated=False, ", "")
        .replace("tortoise.sqlite", "counted.sqlite")
        .replace("assert author.id == before", "print(author.id)")
    )
    (folder / "counted.py").write_text(counted)
    command[1] = "counted.py"
    assert subprocess.run(command, check=True, cwd=folder, capture_output=True, text=True, timeout=60).stdout == "1\n"


def test_pools_of_joblib_and_loky(folder):
    """In each worker, a pickled handle of a store leases its own number. A handle of a fixed number is refused when it is used."""
    pytest.importorskip("joblib")
    (folder / "pools.py").write_text(
        """
import frazil, joblib, loky
shared, fixed = frazil.Snowflake("standard", store="local"), frazil.Snowflake("standard", node=7)
def made(ids):
    return [joblib.Parallel(n_jobs=2, timeout=60)(joblib.delayed(ids.next)() for _ in range(8)), loky.get_reusable_executor(2).submit(ids.next).result(60)]
many, one = made(shared)
assert len({*many, one, shared.next()}) == 10 and len({frazil.Layout("standard").decode(id).node for id in [*many, shared.next()]}) > 1
for backend in "loky", "multiprocessing":
    try:
        joblib.Parallel(n_jobs=2, timeout=60, backend=backend)(joblib.delayed(fixed.next)() for _ in range(2))
    except frazil.errors.ForkedError as error:
        print(error)
print(len(joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(fixed.next)() for _ in range(4))))
"""
    )
    done = subprocess.run([sys.executable, "pools.py"], check=False, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    *refused, made = done.stdout.splitlines()
    assert made == "4" and len(refused) == 2 and all("comes from another process" in line for line in refused)
