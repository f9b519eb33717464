"""The npm packages: frazil, and the addon's package for this platform, installed into empty folders."""

import json
import os
import re
import shutil
import subprocess
from functools import partial

import pytest
from conftest import HOST, NOTICES, PACKAGES, ROOT, names_its_crates, shares_the_unwinder

TOOLS = ROOT / "tests/node/node_modules/.bin"
# The output: an ID, its time, node and sequence.
SHOWN = r"\d{18,19} 20\S+Z \d+ \d+\n"


@pytest.fixture(scope="session")
def platform(packed):
    """Returns the package of this platform, as the fields of its package.json."""
    [addon] = packed.glob("npm/*/*.node")
    return json.loads((addon.parent / "package.json").read_text())


@pytest.fixture(scope="session")
def installed(run, registry, tmp_path_factory):
    """Returns a folder after `npm install frazil`."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "package.json").write_text('{ "private": true }')
    run(folder, "npm", "install", f"--registry={registry}", "frazil")
    return folder


@pytest.fixture
def broken(installed, tmp_path):
    """Copies that folder, so that a test can break it."""
    shutil.copytree(installed, tmp_path, dirs_exist_ok=True, copy_function=os.link, symlinks=True)
    return tmp_path


def test_npm_installs_frazil_and_the_package_of_this_platform(installed, platform):
    modules = installed / "node_modules"
    assert {path.name for path in modules.glob("[!.]*")} == {"frazil", platform["name"]}
    for folder in (modules / "frazil", modules / platform["name"]):
        manifest = json.loads((folder / "package.json").read_text())
        assert "scripts" not in manifest, "npm would run them"
        assert {path.name for path in folder.iterdir()} == {
            *(path.split("/")[0] for path in manifest["files"]),
            "package.json",
            "README.md",
        }
        assert {"LICENSE-MIT", "LICENSE-APACHE"} < set(manifest["files"])
    assert (modules / platform["name"] / "THIRD-PARTY-NOTICES.txt").read_bytes() == NOTICES


def test_npm_asks_for_no_other_package(installed, asked, tarballs, platform):
    """npm would ask the registry for each optional peer that has a range, and for all peers of those: for dozens of packages."""
    names = {*asked} - {tarball.name for tarball in tarballs}
    manifest = json.loads((installed / "node_modules/frazil/package.json").read_text())
    assert {"frazil", platform["name"]} <= names <= {"frazil", *manifest["optionalDependencies"]}


def test_a_package_follows_from_its_content(run, packed, tmp_path):
    """Builds of one commit are equal at any time, and for an account with any umask. `packed` has built the tree's files."""
    archives = []
    for number, readable in enumerate((0o644, 0o600)):
        tree = tmp_path / str(number)
        shutil.copytree(ROOT / "node", tree / "node", ignore=shutil.ignore_patterns("*.node", "node_modules"))
        for name in ("THIRD-PARTY-NOTICES.txt", "README.md"):
            shutil.copy(ROOT / name, tree)
        (tree / "addon").write_text("an addon")
        for path in (path for path in tree.rglob("*") if path.is_file()):
            path.chmod(readable | path.stat().st_mode & 0o100)
            os.utime(path, (1_700_000_000 + number,) * 2)
        run(tree, "node", "node/pack.mjs", HOST, "addon", "packed")
        archives.append({path.name: path.read_bytes() for path in (tree / "packed").glob("*.tgz")})
    assert len(archives[0]) == 2 and archives[0] == archives[1]


def test_npm_shows_no_link_to_a_file_that_is_not_in_the_package(installed):
    links = re.findall(r"\]\(([^)]+)\)", (installed / "node_modules/frazil/README.md").read_text())
    assert "https://github.com/frazil/frazil/blob/main/docs/layouts.md" in links
    assert all(link.startswith(("https://", "#")) for link in links)


def test_the_loader_names_every_package(installed):
    frazil = installed / "node_modules/frazil"
    named = re.findall(r"case '(.*)':\n +return require\('frazil-(.*)'\)", (frazil / "native.js").read_text())
    packages = json.loads((frazil / "package.json").read_text())["optionalDependencies"]
    assert named == [(name.removeprefix("frazil-"),) * 2 for name in packages]


@pytest.fixture(scope="session")
def quick_start(example):
    """Returns the README's quick start, as CommonJS and as ESM."""
    mjs = example("js")
    cjs, changed = re.subn(r"^import (\{.*?\}) from (.*)\n", r"const \1 = require(\2)\n;(async () => {", mjs, flags=re.MULTILINE)
    assert changed == 1
    return {"cjs": f"{cjs}}})()\n", "mjs": mjs}


@pytest.mark.parametrize("kind", ["cjs", "mjs"])
def test_quick_start(run, installed, quick_start, kind):
    (installed / f"quick_start.{kind}").write_text(quick_start[kind])
    output = run(installed, "node", f"quick_start.{kind}")
    assert re.fullmatch(SHOWN, output), output


def test_types(run, installed, quick_start):
    folder = installed / "types"
    shutil.copytree(ROOT / "tests/node/types", folder)
    (folder / "quick_start.mts").write_text(quick_start["mjs"])
    run(folder, TOOLS / "tsc", "--project", ".", "--lib", "es2022,dom")


@pytest.mark.parametrize("which", [0, 1], ids=["frazil", "platform"])
def test_publint(run, tarballs, which):
    run(ROOT, TOOLS / "publint", "run", "--strict", tarballs[which])


def test_attw(run, tarballs):
    run(ROOT, TOOLS / "attw", tarballs[0])


def test_command(run, installed):
    version = json.loads((installed / "node_modules/frazil/package.json").read_text())["version"]
    assert run(installed, "npx", "--no-install", "frazil", "--version") == f"frazil {version}\n"
    output = run(installed, "npx", "--no-install", "frazil", "sql", "postgresql", "twitter")
    assert output.startswith(f"-- frazil {version}: functions for PostgreSQL")
    store = f"file:{installed}/store"
    program = f"require('frazil').Snowflake.open('twitter', {{ datacenter: 1, worker: 7, store: '{store}' }}).then(ids => ids.close())"
    run(installed, "node", "--eval", program)
    output = run(installed, "npx", "--no-install", "frazil", "nodes", store)
    assert "\n0 of 1024 node numbers held, 1 free or passed, 1023 never used\n" in output


def refusal(run, folder, *flags):
    """Returns the code and the message of the error of require('frazil')."""
    program = "try { require('frazil') } catch (error) { console.log(error.code + '\\n' + error.message) }"
    code, _, message = run(folder, "node", *flags, "--eval", program).partition("\n")
    return code, message


def test_tarballs_install_offline_and_the_loader_says_which_is_missing(run, tarballs, platform, tmp_path):
    (tmp_path / "package.json").write_text('{ "private": true }')
    install = partial(run, tmp_path, "npm", "install", "--offline")
    install(tarballs[0])
    code, message = refusal(run, tmp_path)
    assert code == "ADDON_NOT_FOUND"
    both = f'"npm install ./{tarballs[0].name} ./{tarballs[1].name}"'
    for part in (
        both,
        platform["name"].removeprefix("frazil-"),
        "Node 2",
        '"npm install" again',
        "--omit=optional",
        "leave frazil external",
    ):
        assert part in message
    assert run(tmp_path, "npx", "--no-install", "frazil", "--version", fails=True) == f"frazil: {message}"
    assert message.splitlines()[0] in run(tmp_path, "node", "--input-type=module", "--eval", "import 'frazil'", fails=True)

    install(tarballs[1])
    assert run(tmp_path, "node", "--print", "require('frazil/uuid').uuid7().length") == "36\n"


ARCH = "arch: { value: 'arm64' }"
FAKES = {
    "node": ("versions: { value: { node: '12.22.12' } }", "UNSUPPORTED_NODE", ["needs Node >=18", "this is Node 12.22.12", "nodejs.org"]),
    "system": (
        f"platform: {{ value: 'freebsd' }}, {ARCH}",
        "UNSUPPORTED_PLATFORM",
        ["freebsd-arm64", "Node 2", "linux-x64-gnu, linux-arm64-gnu, ", "win32-x64-msvc", "from source: https://"],
    ),
    "processor": ("arch: { value: 'riscv64' }", "UNSUPPORTED_PLATFORM", ["linux-riscv64-gnu"]),
    "ARMv6": (
        "arch: { value: 'arm' } }); Object.defineProperties(require('os'), { machine: { value: () => 'armv6l' }",
        "UNSUPPORTED_PLATFORM",
        ["linux-armv6-gnueabihf"],
    ),
    "32 bits": ("arch: { value: 'arm' }", "ADDON_NOT_FOUND", ["linux-arm-gnueabihf"]),
    "musl": ("execPath: { value: __filename /* /lib/ld-musl-x86_64.so.1 */ }", "ADDON_NOT_FOUND", ["-musl"]),
    "musl, where the program's head names no linker": (
        "execPath: { value: __filename }, report: { value: { getReport: () => ({ header: {} }) } }",
        "ADDON_NOT_FOUND",
        ["-musl"],
    ),
    "macOS": (f"platform: {{ value: 'darwin' }}, {ARCH}", "ADDON_NOT_FOUND", ["darwin-arm64", "from another platform"]),
    "Windows": ("platform: { value: 'win32' }, arch: { value: 'x64' }", "ADDON_NOT_FOUND", ["win32-x64-msvc"]),
    "Windows on arm64": ("platform: { value: 'win32' }, arch: { value: 'arm64' }", "ADDON_NOT_FOUND", ["win32-arm64-msvc"]),
}


@pytest.mark.parametrize("fake, code, says", FAKES.values(), ids=FAKES)
def test_the_loader_refuses(run, installed, tmp_path, fake, code, says):
    (tmp_path / "fake.cjs").write_text(f"Object.defineProperties(process, {{ {fake} }})")
    refused, message = refusal(run, installed, "--require", tmp_path / "fake.cjs")
    assert refused == code, message
    for part in says:
        assert part in message


def test_an_old_node_can_parse_the_entries(run, installed):
    # esbuild does not change code that needs no newer syntax than the target's. ES2019 is Node 12.
    for name in ("index.js", "native.js", "cli.js"):
        file = installed / "node_modules/frazil" / name
        old, new = [run(installed, TOOLS / "esbuild", file, f"--target={target}") for target in ("es2019", "esnext")]
        assert old == new


def test_an_addon_that_cannot_be_loaded(run, broken, platform):
    addon = broken / "node_modules" / platform["name"] / platform["main"]
    code = bytearray(addon.read_bytes())
    code[18] = 243  # ELF's number of RISC-V
    addon.unlink()
    addon.write_bytes(code)
    code, message = refusal(run, broken)
    assert code == "ADDON_NOT_LOADED"
    for part in (platform["main"], "cannot open shared object file", "remove node_modules", "/issues"):
        assert part in message


def test_an_addon_of_another_version(run, broken):
    manifest = broken / "node_modules/frazil/package.json"
    changed = re.sub(r'"version": ".*"', '"version": "99.0.0"', manifest.read_text())
    manifest.unlink()
    manifest.write_text(changed)
    code, message = refusal(run, broken)
    assert code == "ADDON_VERSION"
    assert "frazil is 99.0.0" in message and "remove node_modules" in message


def test_a_source_tree_that_is_not_built(run, tmp_path):
    shutil.copytree(ROOT / "node", tmp_path / "node_modules/frazil", ignore=shutil.ignore_patterns("*.node"))
    code, message = refusal(run, tmp_path)
    assert code == "ADDON_NOT_FOUND" and "run node/build.sh" in message


@pytest.fixture
def bundle(run, installed, quick_start):
    """Bundles the quick start for Node by esbuild. Returns esbuild's output."""
    # CommonJS does not allow await outside a function.
    inside = re.sub(r"^const (\{.*?\}) = require\((.*?)\)$", r"import \1 from \2", quick_start["cjs"], flags=re.MULTILINE)
    (installed / "bundled.mjs").write_text(inside)
    return partial(run, installed, TOOLS / "esbuild", "bundled.mjs", "--bundle", "--platform=node")


@pytest.mark.parametrize("output, suffix", [("cjs", "cjs"), ("esm", "mjs")])
def test_a_bundle_with_frazil_external(run, installed, bundle, output, suffix):
    bundle("--external:frazil", f"--format={output}", f"--outfile=bundle.{suffix}")
    assert re.fullmatch(SHOWN, run(installed, "node", f"bundle.{suffix}"))


def test_a_bundler_that_includes_frazil_prints_what_to_do(bundle):
    output = bundle("--outfile=wrong.cjs", fails=True)
    assert 'No loader is configured for ".node"' in output and "// leave external\n" in output


def test_a_bundle_with_the_addon(run, bundle, tmp_path):
    bundle("--loader:.node=copy", f"--outdir={tmp_path}")
    assert re.fullmatch(SHOWN, run(tmp_path, "node", "bundled.js"))


# The documents that describe the installation of the npm package.
PAGES = [
    *(ROOT / name for name in ("README.md", "README.zh-CN.md", "README.ja.md", "node/README.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("examples/*/README.md")),
]
BUILD = "~/frazil/node/build.sh --release"
# A program for each adapter that loads a framework, which a link to the checkout would not find.
ADAPTED = {
    "zod": "import { snowflakeId } from 'frazil/zod'; console.log(snowflakeId().parse('7'))",
    "graphql": "import { GraphQLSnowflake } from 'frazil/graphql'; console.log(GraphQLSnowflake.parseValue('7'))",
    "nest": "import { ParseSnowflakePipe } from 'frazil/nestjs'; console.log(new ParseSnowflakePipe().transform('7'))",
    "drizzle": "import { pgTable } from 'drizzle-orm/pg-core'; import { snowflake } from 'frazil/drizzle/pg'\n"
    "console.log(pgTable('t', { id: snowflake('id') }).id.mapFromDriverValue('7'))",
    "typeorm": "import { snowflakeColumn } from 'frazil/typeorm'; console.log(snowflakeColumn.transformer.to('7'))",
}
FRAMEWORKS = ["zod", "graphql", "@nestjs/common", "@nestjs/core", "reflect-metadata", "rxjs", "drizzle-orm", "typeorm"]


def install_commands(page):
    """Returns the lines of a page's code that install frazil into a Node project."""
    code = re.findall(r"^ *```sh\n(.*?)^ *```$|^    (\S[^\n]*)$", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [part.split("  #")[0].strip() for block in code for part in re.split(r"\n|&&", "".join(block))]
    return [line for line in lines if re.match(r"npm install\b.*\bfrazil\b", line) and "/package/node/" not in line]


INSTALLING = [page for page in PAGES if install_commands(page)]


@pytest.fixture(scope="session")
def checkout(packed, tmp_path_factory):
    """Returns a folder with `frazil`, a checkout after the build that the pages describe. In the short form, a script replaces cargo."""
    home = tmp_path_factory.mktemp("home")
    source = home / "frazil"
    shutil.copytree(ROOT / "node", source / "node", ignore=shutil.ignore_patterns("*.node", "node_modules", "esm", "cjs"))
    (source / "tests").mkdir()
    (source / "tests/node").symlink_to(ROOT / "tests/node")
    (source / "scripts").symlink_to(ROOT / "scripts")
    shutil.copy(ROOT / "Cargo.toml", source)
    addon = next(packed.glob("npm/*/*.node"))
    library = home / "target/release/libfrazil_node.so"
    library.parent.mkdir(parents=True)
    shutil.copy(addon, library)
    cargo = home / "bin/cargo"
    cargo.parent.mkdir()
    cargo.write_text(
        '#!/bin/sh\n[ "$1" != --version ] || exec echo cargo 1.99.0\nexec test "$*" = "build --quiet --package frazil-node --features aligned --profile release"\n'
    )
    cargo.chmod(0o755)
    build = os.environ | {"HOME": str(home), "CARGO_TARGET_DIR": str(home / "target"), "PATH": f"{cargo.parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", BUILD], check=True, env=build)
    return home


@pytest.fixture(scope="session")
def lines_in(checkout):
    """Returns a function that makes a folder a project, and returns a function that runs a page's line in it, with the checkout in the home.

    Frameworks come from this machine's npm.
    """
    quiet = {"npm_config_audit": "false", "npm_config_fund": "false", "npm_config_loglevel": "error", "npm_config_ignore_scripts": "true"}
    cache = subprocess.run(["npm", "config", "get", "cache"], check=True, capture_output=True, text=True).stdout.strip()
    env = os.environ | quiet | {"HOME": str(checkout), "npm_config_cache": cache, "npm_config_prefer_offline": "true"}
    env.setdefault("npm_config_userconfig", os.path.expanduser("~/.npmrc"))

    def lines_in(folder):
        subprocess.run(["npm", "init", "-y"], check=True, cwd=folder, env=env, stdout=subprocess.DEVNULL)

        def line(command):
            result = subprocess.run(["sh", "-c", command], check=False, cwd=folder, env=env, capture_output=True, text=True)
            assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
            return result.stdout

        line.folder = folder
        return line

    return lines_in


@pytest.fixture
def project(lines_in, tmp_path):
    return lines_in(tmp_path)


@pytest.fixture(scope="session")
def every_framework(lines_in, tmp_path_factory):
    """Returns a project that keeps the frameworks of the lines before, because npm needs half a minute for each empty folder."""
    return lines_in(tmp_path_factory.mktemp("every_framework"))


def finds_frameworks(project):
    """Installs the frameworks in their tested versions, and runs each adapter's program."""
    pinned = json.loads((ROOT / "tests/adapters/node/package.json").read_text())["dependencies"]
    project("npm install " + " ".join(f"{name}@{pinned[name]}" for name in FRAMEWORKS))
    frazil = project.folder / "node_modules/frazil"
    assert not any(path.is_symlink() for path in (frazil, *frazil.rglob("*"))), "npm has linked the checkout"
    for name, program in ADAPTED.items():
        (project.folder / f"{name}.mjs").write_text(program)
        assert project(f"node {name}.mjs") == "7\n", name
    assert re.fullmatch(r"\d{18,19}\n", project("""node -p 'new (require("frazil").Snowflake)("standard", { store: "memory" }).next()'"""))


def test_the_pages_that_install_build_first():
    """Each page that installs a checkout's package has the command that makes it, and no page installs another package."""
    names = [str(page.relative_to(ROOT)) for page in INSTALLING]
    assert {"README.md", "docs/start.md", "docs/node.md", "docs/node-orm.md", "docs/node-web.md"} < {*names}, names
    for page in INSTALLING:
        assert BUILD in page.read_text(), page
        assert all("npm install ~/frazil/build/frazil.tgz" in line for line in install_commands(page)), page


@pytest.mark.parametrize("command", dict.fromkeys(line for page in INSTALLING for line in install_commands(page)))
def test_each_line_of_the_pages_installs_a_package_and_no_link(every_framework, command):
    """In a project without frazil, the line installs a package that mints."""
    frazil = every_framework.folder / "node_modules/frazil"
    every_framework("npm uninstall frazil")
    assert not os.path.lexists(frazil)
    every_framework(command)
    assert not frazil.is_symlink() and (frazil / "frazil.node").is_file()
    every_framework("""node -e 'new (require("frazil").Snowflake)("standard", { store: "memory" }).next()'""")


@pytest.mark.parametrize(
    "commands",
    [
        ["npm install ~/frazil/build/frazil.tgz"],
        # As in node/README.md, because a later `npm install` would replace the folder with a link.
        ["npm config set install-links true --location=project", "npm install ~/frazil/node"],
    ],
    ids=["package", "folder"],
)
def test_the_adapters_find_the_projects_frameworks(project, commands):
    for command in commands:
        assert command.replace("~/frazil", "path/to/frazil") in (ROOT / "node/README.md").read_text().replace("\n  ", " ")
        project(command)
    finds_frameworks(project)


def test_a_new_build_replaces_the_installed_one(project, checkout):
    """npm detects the change by the file's hash, because the version stays the same."""
    project("npm install ~/frazil/build/frazil.tgz")
    built = checkout / "frazil/build/frazil.tgz"
    kept = built.read_bytes()
    try:
        index = checkout / "frazil/node/index.js"
        index.write_text(index.read_text() + "module.exports.again = true\n")
        project("cd ~/frazil/node && npm pack --silent --pack-destination .. && mv ../frazil-*.tgz ../build/frazil.tgz")
        project("npm install ~/frazil/build/frazil.tgz")
        assert project("node -p 'require(\"frazil\").again'") == "true\n"
    finally:
        built.write_bytes(kept)


full_form = pytest.mark.skipif(not PACKAGES, reason="in the full form only: `make package`")


@full_form
def test_the_addon_needs_glibc_2_17_at_most(run, installed, platform):
    addon = installed / "node_modules" / platform["name"] / platform["main"]
    assert shares_the_unwinder(addon.read_bytes())
    assert names_its_crates((addon.parent / "sbom.cdx.json").read_text(), addon.read_bytes())
    output = run(installed, "readelf", "--wide", "--version-info", addon)
    needed = {tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([\d.]+)", output)}
    assert needed and max(needed) <= (2, 17)


@pytest.fixture
def other_node(run, tmp_path):
    """Installs a version of Node from this machine's npm registry, and returns its path."""

    def install(version):
        package = run(tmp_path, "node", "--print", "`node-${process.platform}-${process.arch}`").strip()
        command = ["npm", "install", "--loglevel=error", "--no-audit", "--no-fund", "--prefix", tmp_path, f"{package}@{version}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return tmp_path / "node_modules" / package / "bin/node"

    return install


@full_form
@pytest.mark.parametrize("version", ["18.20.8", "24.21.0"])
def test_another_node_runs_the_quick_start(run, installed, quick_start, other_node, version):
    (installed / "quick_start.mjs").write_text(quick_start["mjs"])
    assert re.fullmatch(SHOWN, run(installed, other_node(version), "quick_start.mjs"))


@full_form
def test_an_old_node_is_refused_with_the_version_it_needs(run, installed, other_node):
    node = other_node("12.22.12")
    for command in (["--eval", "require('frazil')"], ["node_modules/.bin/frazil", "--version"]):
        assert "needs Node >=18, and this is Node 12.22.12" in run(installed, node, *command, fails=True)
