"""The packages of a release on machines that have nothing else: `make rehearse`, after `make package`.

A machine is a folder with a release of Debian and the packages that MACHINES names; a test's changes to it are dropped. It has the release's
packages, registries on loopback or in folders, and the network. The commands and the programs are those of the pages. Where a page builds from
a checkout, because frazil is not published yet, a test installs from the registry.
"""

import os
import re
import shutil
import subprocess

import pytest
import servers
from conftest import HOST, PACKAGES, ROOT, VERSION, WHEELS

FOLDER = os.environ.get("FRAZIL_REHEARSAL")
pytestmark = pytest.mark.skipif(not FOLDER, reason="needs root and Debian: make rehearse")
DEBIAN = ROOT / "tests/tools/debian.sh"
NATIVE = "gcc g++ make cmake pkg-config"
# Debian's release of each machine, and its packages.
MACHINES = {
    "empty": ("trixie", "python3-venv nodejs npm"),
    "compiler": ("trixie", f"{NATIVE} cargo"),
    # The oldest release that Debian's mirrors have, with glibc 2.31.
    "oldest": ("bullseye", f"{NATIVE} python3-venv nodejs npm"),
    # The release with a cargo that suffices.
    "rust": ("sid", f"{NATIVE} cargo python3-venv nodejs npm"),
}
# A release's build with less optimisation, which takes most of its time.
QUICK = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16", "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1"}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
IDS = r"\d{18,19}\b"


def blocks(page, language=""):
    """Returns the code of a page of the guide in a language."""
    found = re.findall(r"^```(.*?)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [code for named, code in found if named == language]


def command(page, language, old, new):
    """Returns the only block of a page that has a text, with another one in its place."""
    [found] = [block for block in blocks(page, language) if old in block]
    return found.replace(old, new)


@pytest.fixture
def machine(tmp_path):
    """Returns a function that runs a script in the home of a machine, and returns its output. `home` is kept until the test ends."""
    home = tmp_path / "home"
    home.mkdir()

    def machine(name, script, *mounts, fails=False, **environment):
        release, packages = MACHINES[name]
        folder = f"{FOLDER}/{name}"
        subprocess.run([DEBIAN, "make", folder, release, ",".join(["ca-certificates", *packages.split()])], check=True)
        # A registry may have a certificate that only this system knows.
        settings = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"}
        settings |= {"PIP_CERT": CERTIFICATES, "NODE_EXTRA_CA_CERTS": CERTIFICATES, "SSL_CERT_FILE": CERTIFICATES}
        settings |= {"NO_PROXY": "127.0.0.1", "npm_config_audit": "false", "npm_config_update_notifier": "false"}
        settings |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        mounted = [f"{home}:/root", *(f"{path}:{path}" for path in mounts)]
        within = ["/usr/bin/env", "-i", *(f"{key}={value}" for key, value in (settings | environment).items())]
        done = subprocess.run(
            [DEBIAN, "try", folder, *mounted, "--", *within, "sh", "-euc", f"cd\n{script}"],
            check=False,
            capture_output=True,
            text=True,
            timeout=3600,
        )
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{name} exits with {done.returncode}:\n{script}\n{output}"
        return output

    machine.home = home
    return machine


@pytest.fixture
def checkout(machine):
    """Returns the checkout's tracked files as `~/frazil` on the machines, without anything that was built."""
    folder = machine.home / "frazil"
    folder.mkdir()
    listed = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, check=True, capture_output=True).stdout
    packed = ["tar", "--create", "--null", "--ignore-failed-read", "--directory", ROOT, "--files-from", "-"]
    packed = subprocess.run(packed, input=files, check=True, capture_output=True).stdout
    subprocess.run(["tar", "--extract", "--directory", folder], input=packed, check=True)
    return folder


@pytest.fixture(scope="module")
def cargo(tmp_path_factory):
    """Returns a folder for what cargo downloads and builds, and the settings that name it."""
    folder = tmp_path_factory.mktemp("cargo")
    return folder, {"CARGO_HOME": f"{folder}/home", "CARGO_TARGET_DIR": f"{folder}/target", "CARGO_PROFILE_DEV_DEBUG": "0"} | QUICK


@pytest.fixture(scope="module")
def database():
    with servers.start("postgresql") as database:
        yield database.url


def test_the_empty_machine_cannot_build(machine):
    machine("empty", "for tool in cc gcc c++ make cargo rustc; do ! command -v $tool; done")


def test_pip_install_frazil(machine, index, database):
    """The wheel needs no compiler. It runs the first programs of the pages."""
    install = command("docs/start.md", "sh", "pip install ~/frazil/python", "pip install frazil")
    for name, page in (("first", "docs/start.md"), ("page", "docs/python.md"), ("readme", "README.md")):
        (machine.home / f"{name}.py").write_text(blocks(page, "python")[0])
    script = f"{install}\nfor name in first page readme; do python $name.py; done\nfrazil --version"
    output = machine("empty", script, WHEELS, index.removeprefix("file://"), PIP_INDEX_URL=index, DATABASE_URL=database)
    assert f"Successfully installed frazil-{VERSION}" in output and f"frazil {VERSION}\n" in output
    assert re.search(rf"^{IDS} under node \d+\n", output, re.MULTILINE), output


def test_npm_install_frazil(machine, registry, database):
    """npm chooses the package of the platform, and compiles nothing."""
    install = command("docs/start.md", "sh", "npm install ~/frazil/build/frazil.tgz", "npm install frazil")
    install = install.replace("~/frazil/node/build.sh --release\n", "")
    for name, page in (("first", "docs/start.md"), ("page", "docs/node.md"), ("readme", "README.md")):
        (machine.home / f"{name}.mjs").write_text(blocks(page, "js")[0])
    script = f"{install}\nfor name in first page readme; do node $name.mjs; done\nnpx --no-install frazil --version"
    output = machine("empty", script, npm_config_registry=registry, DATABASE_URL=database)
    assert f"frazil {VERSION}\n" in output
    assert re.search(rf"^{IDS} under node \d+$", output, re.MULTILINE), output
    assert re.search(r'^{"id":"\d{18,19}"} 20', output, re.MULTILINE), output


def test_cargo_add_frazil(machine, crates_index, cargo, database):
    """The first steps, and the web service of the guide, whose other crates come from crates.io."""
    built, settings = cargo
    published = settings | {"CARGO_REGISTRIES_REHEARSAL_INDEX": crates_index}
    first = command("docs/start.md", "sh", "--path ~/frazil/core", "--registry rehearsal")
    program = blocks("docs/start.md", "rust")[0]
    (machine.home / "first.rs").write_text(program)
    output = machine("rust", f"{first}\ncp ~/first.rs src/main.rs\ncargo run --quiet", built, **published)
    assert f"Adding frazil v{VERSION}" in output and re.search(rf"^{IDS}$", output, re.MULTILINE), output

    install = command("docs/rust.md", "sh", "--path ~/frazil/core", "--registry rehearsal")
    manifest = re.sub(r"^frazil = .*\n", "", blocks("docs/rust.md", "toml")[0], flags=re.MULTILINE)
    (machine.home / "manifest").write_text(manifest.replace("[dependencies]\n", ""))
    (machine.home / "service.rs").write_text(blocks("docs/rust.md", "rust")[0])
    script = f"""
        cargo new service && cd service
        cat ~/manifest >> Cargo.toml
        {install}
        cp ~/service.rs src/main.rs
        cargo build --quiet
        ADDRESS=127.0.0.1:0 timeout --preserve-status --signal=INT 5 cargo run --quiet"""
    machine("rust", script, built, DATABASE_URL=database, **published)


def test_an_old_cargo_is_refused_with_the_version_it_needs(machine, crates_index):
    install = command("docs/start.md", "sh", "--path ~/frazil/core", "--registry rehearsal")
    output = machine("compiler", install, CARGO_REGISTRIES_REHEARSAL_INDEX=crates_index, fails=True)
    assert f"frazil@{VERSION} which requires rustc 1.94" in output, output


@pytest.fixture(params=["compiler", "oldest"])
def unpacked(request, machine):
    """Returns a function that runs a script on a machine after the page's commands that unpack the release's archive."""
    [archive] = [path for path in (ROOT / PACKAGES / "c").glob("*.tar.gz") if "-lean" not in path.name]
    shutil.copy(archive, machine.home)
    install = command("docs/c-cpp.md", "", f"tar -xzf frazil-{VERSION}-x86_64-unknown-linux-gnu", f"tar -xzf frazil-{VERSION}-{HOST}")
    install = install.replace("x86_64-unknown-linux-gnu", HOST)
    for name, language in (("app.c", "c"), ("app.cpp", "cpp")):
        (machine.home / name).write_text(blocks("docs/start.md", language)[0])
    return lambda script: machine(request.param, f"{install}\n{script}")


def test_pkg_config(unpacked):
    *commands, sanitized = blocks("docs/c-cpp.md", "sh")
    assert len(commands) == 4 and sanitized.endswith(" ./app\n")
    output = unpacked("\n".join([*(f"{block}\n./app" for block in commands), sanitized]))
    assert len(re.findall(rf"^(?:{IDS}, )?{IDS}$", output, re.MULTILINE)) == 5, output


def test_cmake(unpacked, machine):
    (machine.home / "CMakeLists.txt").write_text(blocks("docs/c-cpp.md", "cmake")[0])
    for shared in ("ON", "OFF"):
        output = unpacked(f"cmake -B build -DCMAKE_PREFIX_PATH=$PREFIX -DBUILD_SHARED_LIBS={shared}\ncmake --build build\nbuild/app")
        assert re.search(rf"^{IDS}, {IDS}$", output, re.MULTILINE), output


def test_an_old_python_finds_no_package(machine, index):
    """Debian 11's pip ignores what is for a newer Python, and does not name the version."""
    script = "python3 -m venv venv\nvenv/bin/pip install frazil"
    output = machine("oldest", script, WHEELS, index.removeprefix("file://"), PIP_INDEX_URL=index, fails=True)
    assert "No matching distribution found for frazil" in output, output


def test_an_old_node_is_refused_with_the_version_it_needs(machine, registry):
    script = "npm install frazil\nnode --eval 'require(\"frazil\")'"
    output = machine("oldest", script, npm_config_registry=registry, fails=True)
    assert "needs Node >=18, and this is Node 12." in output, output


def test_conan(machine, checkout, cargo):
    """The recipe builds the checkout, with Debian's cargo. The lean build has a tenth of the crates."""
    pinned = re.search(r"^conan==.*$", (ROOT / "scripts/release-requirements.txt").read_text(), re.MULTILINE)[0]
    create = command("docs/c-cpp.md", "", "conan create packaging/conan", "conan create packaging/conan -o '&:stores=False'")
    script = f"python3 -m venv .venv && . .venv/bin/activate\npip install --quiet {pinned}\nconan profile detect\ncd ~/frazil\n{create}"
    assert f"frazil {VERSION} makes " in machine("rust", script, cargo[0], **cargo[1])


def test_make_install_from_a_checkout(machine, checkout, cargo):
    """The commands that the page prints today for C and C++."""
    first, c, cpp = [block for block in blocks("docs/start.md", "sh") if "$HOME/.local" in block]
    for file, block in (("app.c", "c"), ("app.cpp", "cpp")):
        (machine.home / file).write_text(blocks("docs/start.md", block)[0])
    output = machine("rust", f"{first}\n{c}\n{cpp}", cargo[0], **cargo[1])
    assert re.search(rf"^{IDS}\n{IDS}, {IDS}$", output, re.MULTILINE), output
