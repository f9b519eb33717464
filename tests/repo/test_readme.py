"""The READMEs' examples run unchanged (their Rust examples are doctests of the core)."""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import frazil
import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import servers

GUIDES = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
READMES = ["README.md", *GUIDES, "python/README.md", "node/README.md", "c-api/README.md"]
BLOCKS = [
    (path, *block)
    for path in READMES
    for block in re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / path).read_text(), re.MULTILINE | re.DOTALL)
]
LIB = ROOT / "build/c/lib"
C_FLAGS = [f"-I{ROOT}/build/c/include", f"-L{LIB}", f"-Wl,-rpath,{LIB}", "-Wall", "-Wextra", "-Werror"]


def blocks(language):
    found = [pytest.param(code, id=f"{path}-{language}") for path, name, code in BLOCKS if name == language]
    assert found, f"a README has an example in {language}"
    return found


@pytest.fixture(autouse=True)
def stores(tmp_path, monkeypatch):
    """Sets up the stores that the examples name: `local`, and those with a URL in the environment."""
    monkeypatch.setenv("FRAZIL_GUARD_SCOPE", os.environ["FRAZIL_GUARD_SCOPE"])
    monkeypatch.setenv("FRAZIL_HOME", str(tmp_path / "local"))
    for name in ("DATABASE_URL", "STORE_1", "STORE_2"):
        monkeypatch.setenv(name, f"file:{tmp_path}/{name}")


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code):
    exec(compile(code, "README.md", "exec"), {})


def test_redis_begins_at_once():
    [code] = [code for path, name, code in BLOCKS if (path, name) == ("docs/development.md", "sh")]
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    with servers.start("redis") as redis:
        code = code.replace("redis://localhost:6379/0", redis.url)
        # Without this command, a start waits for 66 s.
        result = subprocess.run(
            ["sh", "-ec", code], check=True, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path}
        )
    assert re.search(r"^\d{1,19}$", result.stdout, re.MULTILINE), result.stdout


@pytest.mark.parametrize("code", blocks("js"))
def test_node(code, tmp_path):
    # The packages are installed under their own names, like by npm.
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/frazil").symlink_to(ROOT / "node")
    (tmp_path / "node_modules/prom-client").symlink_to(ROOT / "tests/node/node_modules/prom-client")
    name = "example.mjs" if re.search(r"^import ", code, re.MULTILINE) else "example.cjs"
    (tmp_path / name).write_text(code)
    subprocess.run(["node", name], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    "compiler, suffix, code",
    [pytest.param(["cc", "-std=c99"], "c", *p.values, id=p.id) for p in blocks("c")]
    + [pytest.param(["c++", "-std=c++17"], "cpp", *p.values, id=p.id) for p in blocks("cpp")],
)
def test_c(compiler, suffix, code, tmp_path):
    source, program = tmp_path / f"example.{suffix}", tmp_path / "example"
    source.write_text(code)
    subprocess.run([*compiler, source, *C_FLAGS, "-lfrazil", "-o", program], check=True)

    def printed():
        environment = {**os.environ, "LC_ALL": "C"}
        return subprocess.run([program], check=True, capture_output=True, text=True, cwd=tmp_path, env=environment).stdout

    first = printed()
    assert re.match(r"\d{1,19}\b", first), first
    if "world.save" in code:
        # The game continues from its save, and from an older save. Without `after=`, it would begin below its last ID.
        again = printed()
        assert int(again) > int(first)
        saved = (tmp_path / "world.save").read_text()
        (tmp_path / "world.save").write_text(re.sub(r"^\d+", "1767225600000", saved))
        assert int(printed()) > int(again)


def test_the_ids_of_samples_come_from_their_generators():
    """The ID that a sample shows has the sample's node number."""
    opens = r"(?:new )?Snowflake(?:\.open)?\('(?P<preset>\w+)', \{ (?P<fields>\w+: \d+[^}]*) \}\)"
    shows = rf"{opens}\n(?:(?! \*/).*\n)*?.*ids\.next\(\) +// '(?P<id>\d+)'"
    files = [ROOT / path for path in [*READMES, "node/index.d.ts"]]
    samples = [match for file in files for match in re.finditer(shows, file.read_text())]
    assert len(samples) >= 2
    for sample in samples:
        fields = {name: int(value) for name, value in re.findall(r"(\w+): (\d+)", sample["fields"])}
        assert frazil.Layout(sample["preset"]).decode(sample["id"]).fields == fields, sample["id"]


# The first pages from which a newcomer copies.
FIRST_PAGES = [
    *("README.md", "docs/start.md", "docs/python.md", "docs/python-web.md", "docs/node.md", "docs/c-cpp.md", "docs/game-servers.md"),
    *("python/README.md", "node/README.md", "c-api/README.md"),
]
FIRST = {(path, name): code for path, name, code in reversed(BLOCKS) if path in FIRST_PAGES and name in ("python", "js", "c", "cpp")}
PROCESSES = 4


def command_of(language, code, folder):
    """Returns the command that runs a sample as a program in a folder."""
    if language == "python":
        (folder / "first.py").write_text(code)
        return [sys.executable, "first.py"]
    if language == "js":
        (folder / "node_modules").mkdir()
        (folder / "node_modules/frazil").symlink_to(ROOT / "node")
        (folder / "first.mjs").write_text(code)
        return ["node", "first.mjs"]
    compiler, suffix = {"c": (["cc", "-std=c99"], "c"), "cpp": (["c++", "-std=c++17"], "cpp")}[language]
    (folder / f"first.{suffix}").write_text(code)
    subprocess.run([*compiler, f"first.{suffix}", *C_FLAGS, "-lfrazil", "-o", "first"], cwd=folder, check=True)
    return ["./first"]


def printed_at_once(command, folder, code=""):
    """Runs several processes at once. Returns the IDs that each prints, except those in its code, and the output of refused ones."""
    # One scope, as on one machine. By default, the tests' processes have separate scopes of fixed numbers.
    together = {**os.environ, "FRAZIL_GUARD_SCOPE": str(folder)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = [subprocess.Popen(command, cwd=folder, env=together, **pipes) for _ in range(PROCESSES)]
    said = [(program.communicate(timeout=120)[0], program.returncode) for program in running]
    id_text = r"(?<!\d)\d{17,19}(?!\d)"
    ids = [set(re.findall(id_text, text)) - set(re.findall(id_text, code)) for text, _ in said]
    return ids, [text for text, status in said if status]


def repeated(ids):
    """Returns the IDs that more than one process has printed."""
    return {id for one, other in itertools.combinations(ids, 2) for id in one & other}


@pytest.mark.parametrize("path, language", FIRST)
def test_a_first_sample_in_four_processes_repeats_no_id(path, language, tmp_path):
    code = FIRST[path, language]
    ids, refused = printed_at_once(command_of(language, code, tmp_path), tmp_path, code)
    assert not repeated(ids)
    # Only the first process gets a fixed number. Node does not wait for that process's end, nor for the next tick.
    assert all(re.search("is in use on this machine|'WOULD_BLOCK'", text) for text in refused), refused
    assert len(refused) < PROCESSES
    if not re.search(r"\b(node|server|worker)(=|: )\d", code):
        assert not refused


def test_a_repeated_id_is_noticed(tmp_path):
    """The control: four processes use one number without the guard."""
    sample = """
        import time, frazil
        ids = frazil.Snowflake("standard", node=1, shared=True, start="zero")
        for _ in range(3000):
            print(ids.next())
            time.sleep(0.001)
    """
    ids, refused = printed_at_once(command_of("python", textwrap.dedent(sample), tmp_path), tmp_path)
    assert not refused and repeated(ids)
