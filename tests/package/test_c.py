"""The C library as users install it: under a moved prefix, in projects outside the tree. The guide's code runs unchanged."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from conftest import HOST, NOTICES, PACKAGES, ROOT, VERSION, names_its_crates, shares_the_unwinder

MAJOR, MINOR, PATCH = map(int, VERSION.split("."))
GUIDE = (ROOT / "docs/c-cpp.md").read_text()
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]
STAND_INS = ROOT / "tests/package/stand_ins"
# A build from source that reuses built dependencies.
FROM_SOURCE = [] if PACKAGES else [f"-DFRAZIL_CARGO={STAND_INS}/cargo"]
TARGET = {"CARGO_TARGET_DIR": str(ROOT / "target")} | os.environ


def run(*command, status=0, **more):
    done = subprocess.run(command, check=False, capture_output=True, text=True, **more)
    assert done.returncode == status, f"{[str(part) for part in command]}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def blocks(language):
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="session")
def lean(install, prefix):
    # Built after the full library, because cargo puts both in the same place.
    return install("-lean")


@pytest.fixture
def project(tmp_path, example):
    """Makes a folder with the programs of the library's README."""
    (tmp_path / "app.c").write_text(example("c", "c-api/README.md"))
    (tmp_path / "app.cpp").write_text(example("cpp", "c-api/README.md"))
    return tmp_path


def mints(program, **environment):
    output = run(program, env=os.environ | environment)
    assert re.match(r"\d{15,19}\b", output), output


@pytest.mark.parametrize("number", range(len(blocks("sh"))))
def test_the_guides_commands(number, project, prefix):
    run("sh", "-euc", blocks("sh")[number], cwd=project, env=os.environ | {"PREFIX": str(prefix)})
    mints(project / "app")


@pytest.mark.parametrize("linked", ["shared", "static"])
def test_pedantic_c99(linked, project, prefix):
    library = ["-l:libfrazil.a"] if linked == "static" else ["-lfrazil"]
    native = re.search(r"^Libs.private: (.+)$", (prefix / "lib/pkgconfig/frazil.pc").read_text(), re.MULTILINE)[1].split()
    run("cc", "-std=c99", *STRICT, "app.c", f"-I{prefix}/include", f"-L{prefix}/lib", *library, *native, "-o", "app", cwd=project)
    needs = re.findall(r"NEEDED.*\[(libfrazil.*)\]", run("readelf", "-d", project / "app"))
    if linked == "static":
        assert not needs
        return mints(project / "app")
    abi = f"0.{MINOR}" if MAJOR == 0 else MAJOR
    assert needs == [f"libfrazil.so.{abi}"]
    assert f"libfrazil.so.{abi}: cannot open shared object file" in run(project / "app", status=127)
    mints(project / "app", LD_LIBRARY_PATH=str(prefix / "lib"))


@pytest.mark.parametrize("name, command", [("app.lua", "luajit app.lua"), ("app.go", "go run app.go")])
def test_other_languages(name, command, tmp_path, prefix):
    if name == "app.go" and not shutil.which("go"):
        pytest.skip("go is missing; make frameworks installs it")
    [code] = blocks(name.partition(".")[2])
    (tmp_path / name).write_text(code)
    found = {"LD_LIBRARY_PATH": f"{prefix}/lib", "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "GOCACHE": str(tmp_path / "cache")}
    assert 10**17 < int(run(*command.split(), cwd=tmp_path, env=os.environ | found)) < 2**63


def test_without_exceptions_and_rtti(tmp_path, prefix):
    [code] = blocks("cpp")
    (tmp_path / "app.cpp").write_text(code.replace("#define FRAZIL_NO_EXCEPTIONS\n", ""))
    flags = ["-std=c++17", "-fno-exceptions", "-fno-rtti", *STRICT, f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    run("c++", "app.cpp", *flags, "-lfrazil", "-o", "app", cwd=tmp_path)
    mints(tmp_path / "app")


def cmake(project, lists, *options):
    (project / "CMakeLists.txt").write_text(lists)
    run("cmake", "-S", project, "-B", project / "a build", *options, env=TARGET)
    run("cmake", "--build", project / "a build", env=TARGET)
    mints(project / "a build/app")


@pytest.mark.parametrize("options, shared", [([], True), (["-DBUILD_SHARED_LIBS=OFF"], False)], ids=["shared", "static"])
def test_find_package(options, shared, project, prefix):
    cmake(project, blocks("cmake")[0], f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    assert ("libfrazil" in run("readelf", "-d", project / "a build/app")) == shared


def test_a_libdir_of_the_system(project, prefix):
    multiarch = run("cc", "-print-multiarch").strip()
    libdir = f"lib/{multiarch}" if multiarch else "lib64"
    (project / "native").write_text(re.search(r"^Libs.private: (.+)$", (prefix / "lib/pkgconfig/frazil.pc").read_text(), re.MULTILINE)[1])
    run(ROOT / "c-api/lay_out.sh", prefix / "lib", project / "native", project / "usr", libdir)
    moved = (project / "usr").rename(project / "moved")
    assert not [path for path in moved.glob("lib/*") if path != moved / libdir]
    cmake(project, blocks("cmake")[0], f"-DCMAKE_PREFIX_PATH={moved}")
    environment = os.environ | {"PKG_CONFIG_PATH": str(moved / libdir / "pkgconfig")}
    run("sh", "-euc", "cc app.c $(pkg-config --cflags --libs frazil) -o app", cwd=project, env=environment)
    mints(project / "app", LD_LIBRARY_PATH=str(moved / libdir))


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_uninstall_removes_what_was_installed_and_nothing_else(tmp_path):
    root = tmp_path / "root/opt/frazil"
    for foreign in ("lib64/libfrazil.so.9", "lib64/libfrazil.conf", "include/frazil.h.orig", "share/doc/other/frazil"):
        (root / foreign).parent.mkdir(parents=True, exist_ok=True)
        (root / foreign).touch()
    for folder in ("lib64/pkgconfig", "lib64/cmake", "lib"):
        (root / folder).mkdir()
    before = tree(root)
    for built in ("libfrazil.so", "libfrazil.a", "native"):
        (tmp_path / built).touch()
    output = run(ROOT / "c-api/lay_out.sh", tmp_path, tmp_path / "native", root, "lib64/")
    installed = sorted(set(tree(root)) - set(before))
    assert output.count("installed ") == len([path for path in installed if not (root / path).is_dir() or (root / path).is_symlink()])
    uninstall = ["make", "--no-print-directory", "-C", ROOT, "uninstall", "PREFIX=/opt/frazil/", f"DESTDIR={tmp_path}/root"]
    assert run(*uninstall, "LIBDIR=/opt/frazil/lib64").replace("removed ", "installed ").splitlines() == output.splitlines()
    assert tree(root) == before
    assert run(*uninstall, "LIBDIR=lib64") == ""
    for outside in ("/usr/lib64", "../lib"):
        assert "is not a folder below PREFIX" in run(*uninstall, f"LIBDIR={outside}", status=2)


@pytest.mark.parametrize(
    "wanted, found",
    [("", 1), (f"{MAJOR}.{MINOR}", 1), (VERSION, 1), (f"{VERSION} EXACT", 1)]
    + [(f"{MAJOR}.{MINOR}.{PATCH + 1}", 0), (f"{MAJOR}.{MINOR + 1}", 0), (f"{MAJOR + 1}", 0)],
)
def test_find_package_of_a_version(wanted, found, tmp_path, prefix):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nset_property(GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS TRUE)\nproject(app NONE)\n"
        f'find_package(frazil {wanted} QUIET)\nmessage("found ${{frazil_FOUND}}")\n'
    )
    assert f"found {found}\n" in run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")


def test_cmake_installs(tmp_path, prefix):
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_INSTALL_LIBDIR=lib", *FROM_SOURCE]
    run("cmake", "-S", ROOT, "-B", tmp_path / "build", *options, env=TARGET)
    run("cmake", "--build", tmp_path / "build", env=TARGET)
    run("cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "prefix")
    assert tree(tmp_path / "prefix") == tree(prefix)


def test_add_subdirectory(project):
    (project / "third_party").mkdir()
    (project / "third_party/frazil").symlink_to(ROOT)
    cmake(project, blocks("cmake")[1], "-DCMAKE_BUILD_TYPE=Debug", *FROM_SOURCE)


@pytest.mark.parametrize(
    "native, listed",
    [
        ("-framework Security -framework CoreFoundation -liconv -lc", "-framework Security;-framework CoreFoundation;-liconv;-lc"),
        ("bcrypt.lib ws2_32.lib /defaultlib:msvcrt", "bcrypt.lib;ws2_32.lib"),
    ],
)
def test_the_native_libraries_of_other_systems(native, listed, tmp_path):
    for library in ("libfrazil.so", "libfrazil.a"):
        (tmp_path / library).touch()
    (tmp_path / "native").write_text(f"{native}\n")
    run(ROOT / "c-api/lay_out.sh", tmp_path, tmp_path / "native", tmp_path / "prefix")
    assert f'INTERFACE_LINK_LIBRARIES "{listed}"' in (tmp_path / "prefix/lib/cmake/frazil/frazilConfig.cmake").read_text()
    assert f"Libs.private: {native}\n" in (tmp_path / "prefix/lib/pkgconfig/frazil.pc").read_text()


def test_fetch_content(project, packages):
    source = ["-DFRAZIL_URL=unused", f"-DFETCHCONTENT_SOURCE_DIR_FRAZIL={ROOT}", *FROM_SOURCE]
    if packages:
        run("git", "-C", ROOT, "archive", "-o", project / "source.tar.gz", "HEAD")
        source = [f"-DFRAZIL_URL=file://{project}/source.tar.gz", "-DFRAZIL_LEAN=ON"]
    cmake(project, blocks("cmake")[2], "-DCMAKE_BUILD_TYPE=Debug", *source)


def test_symbols_are_those_of_the_header(prefix, lean):
    documented = set(re.findall(r"^[a-z].*\b(frazil_\w+)\(", (prefix / "include/frazil.h").read_text(), re.MULTILINE))
    for installed in (prefix, lean):
        defined = r"^\w+ [A-Z] (\S+)$"
        assert set(re.findall(defined, run("nm", "-D", "--defined-only", installed / "lib/libfrazil.so"), re.MULTILINE)) == documented
        static = set(re.findall(defined, run("nm", "-g", "--defined-only", installed / "lib/libfrazil.a"), re.MULTILINE))
        assert {name for name in static if name.startswith("frazil_")} == documented


def test_a_header_of_another_version(project, prefix):
    header = (prefix / "include/frazil.h").read_text()
    newer = re.sub(rf"(FRAZIL_VERSION_PATCH) {PATCH}\b", rf"\1 {PATCH + 1}", header)
    assert newer != header
    (project / "frazil.h").write_text(newer)
    shutil.copy(prefix / "include/frazil.hpp", project)
    flags = [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lfrazil"]
    run("c++", "-std=c++17", "app.cpp", "-I.", *flags, "-o", "app", cwd=project)
    output = run(project / "app", status=-6)
    assert f"frazil.h {MAJOR}.{MINOR}.{PATCH + 1}, and running with the library {VERSION}" in output and "install both" in output


STORES = r"""
#include <frazil.h>
#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        frazil_snowflake *ids;
        int64_t id;
        frazil_status status = frazil_snowflake_open(argv[i], &ids);
        if (status == FRAZIL_OK) {
            status = frazil_snowflake_next(ids, &id);
            frazil_snowflake_free(ids);
        }
        puts(status == FRAZIL_OK ? "OK" : frazil_error_name(status));
    }
    return 0;
}
"""


@pytest.mark.parametrize("build, redis", [("prefix", "STORE_UNREACHABLE"), ("lean", "STORE_NOT_BUILT")])
def test_store_not_built_of_a_lean_build(build, redis, tmp_path, request):
    prefix = request.getfixturevalue(build)
    (tmp_path / "app.c").write_text(STORES)
    flags = ["-std=c99", *STRICT, f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    run("cc", "app.c", *flags, "-lfrazil", "-o", "app", cwd=tmp_path)
    specs = {
        "twitter datacenter=1 worker=7": "OK",
        "standard store=memory": "OK",
        f"standard store=file:{tmp_path}/nodes": "OK",
        "standard store=local": "OK",
        "standard store=redis://127.0.0.1:1": redis,
        "standard store=frazil://127.0.0.1:1": "STORE_UNREACHABLE",
        "standard store=frazils://127.0.0.1:1": redis,
    }
    output = run(tmp_path / "app", *specs, env=os.environ | {"FRAZIL_HOME": str(tmp_path / "home")})
    assert output.split() == list(specs.values())


def test_unreals_item_ids(tmp_path, prefix):
    [code] = blocks("c++")
    (tmp_path / "ItemIds.h").write_text(code)
    (tmp_path / "main.cpp").write_text(
        '#include "ItemIds.h"\nint main() { UItemIds Ids; FSubsystemCollectionBase All; Ids.Initialize(All); int64 Id = Ids.Next();'
        ' std::printf("%lld\\n", Id); }\n'
    )
    flags = ["-std=c++20", "-fno-exceptions", "-fno-rtti", "-Wall", "-Werror", f"-I{prefix}/include", f"-I{STAND_INS}"]
    run("c++", "main.cpp", *flags, f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lfrazil", "-o", "app", cwd=tmp_path)
    mints(tmp_path / "app")


def test_the_licences_of_what_is_linked_in(prefix, lean):
    for installed in (prefix, lean):
        assert (installed / "share/doc/frazil/THIRD-PARTY-NOTICES.txt").read_bytes() == NOTICES


def test_release_archive(prefix, lean, packages):
    if not packages:
        pytest.skip("debug libraries are large, and run on this machine's glibc")
    for installed, suffix, most in ((prefix, "", 6_000_000), (lean, "-lean", 1_330_000)):
        library = installed / "lib/libfrazil.so"
        assert library.stat().st_size <= most, f"{library.stat().st_size} bytes"
        needs = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([\d.]+)", run("objdump", "-T", library))}
        assert needs and max(needs) <= (2, 17), f"glibc {max(needs)}"
        assert shares_the_unwinder(library.read_bytes())
        document = packages / f"c/frazil-{VERSION}-{HOST}{suffix}.cdx.json"
        assert names_its_crates(document.read_text(), library.read_bytes())


def test_make_install(project, packages):
    if not packages:
        pytest.skip("a release build for this machine takes minutes")
    variables = ["PREFIX=/opt/frazil", f"DESTDIR={project}/root", "LIBDIR=lib64"]
    assert run("make", "-C", ROOT, "install", *variables).count("\ninstalled ") == 13
    installed = project / "root/opt/frazil"
    library = installed / "lib64/libfrazil.so"
    assert ".symtab" not in run("readelf", "--wide", "--sections", library)
    assert ".debug_info" not in run("readelf", "--wide", "--sections", library.with_name("libfrazil.a"))
    run("c++", "-std=c++17", "app.cpp", f"-I{installed}/include", f"-L{library.parent}", "-lfrazil", "-o", "app", cwd=project)
    mints(project / "app", LD_LIBRARY_PATH=str(library.parent))
    run("make", "-C", ROOT, "uninstall", *variables)
    assert [path for path in installed.rglob("*") if not path.is_dir()] == []


CONAN = """
import runpy, shutil, sys, types
tools = {"errors": ["ConanInvalidConfiguration"], "tools.build": ["cross_building"], "tools.files": ["rm", "rmdir"], "tools.layout": ["basic_layout"]}
sys.modules["conan"] = types.SimpleNamespace(ConanFile=object)
for module, names in tools.items():
    sys.modules["conan." + module] = types.SimpleNamespace(**dict.fromkeys(names))
sys.modules["conan.tools.files"].load = lambda recipe, path: path.read_text()
sys.modules["conan.tools.files"].copy = lambda recipe, every, source, to: shutil.copytree(source, to, dirs_exist_ok=True)
recipe = runpy.run_path(sys.argv[1] + "/conanfile.py")["Frazil"]()
recipe.recipe_folder, recipe.export_sources_folder = sys.argv[1:]
recipe.export_sources()
"""


def test_the_conan_recipe_exports_what_cargo_reads(tmp_path):
    run(sys.executable, "-c", CONAN, ROOT / "packaging/conan", tmp_path)
    assert '"name":"frazil-c"' in run("cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version=1", cwd=tmp_path)


def test_conan(tmp_path, packages):
    if not packages:
        pytest.skip("needs Conan, which `make package` installs")
    environment = os.environ | {"CONAN_HOME": str(tmp_path), "CARGO_TARGET_DIR": str(ROOT / "target")}
    conan = ROOT / "build/tools/bin/conan"
    run(conan, "profile", "detect", env=environment)
    for shared in (True, False):
        options = ["-s", "build_type=Debug", "-o", f"&:shared={shared}", "-o", "&:stores=False"]
        options += ["-c", f"tools.cmake.cmake_layout:test_folder={tmp_path}/built", "-c", "tools.cmake.cmaketoolchain:user_presets="]
        assert f"frazil {VERSION} makes " in run(conan, "create", ROOT / "packaging/conan", *options, env=environment)


@pytest.mark.parametrize("ending", ["tar.gz", "zip"])
def test_an_archive_follows_from_its_content(ending, tmp_path):
    """Builds of one commit are equal on any machine and at any time."""
    archives = []
    for number, names in enumerate((["b", "a", "run"], ["run", "a", "b"])):
        lib = tmp_path / str(number) / "lib"
        lib.mkdir(parents=True)
        for name in names:
            (lib / name).write_text(name)
            (lib / name).chmod(0o755 if name == "run" else 0o664 if number else 0o600)
            os.utime(lib / name, (1_700_000_000 + number,) * 2)
        if ending == "tar.gz":
            (lib / "link").symlink_to("a")
        archives.append(tmp_path / f"{number}.{ending}")
        run(sys.executable, ROOT / "scripts/archive.py", archives[-1], lib.parent, env=os.environ | {"SOURCE_DATE_EPOCH": "1750000000"})
    assert archives[0].read_bytes() == archives[1].read_bytes()
    wanted = {f"lib/{name}": (0o755 if name == "run" else 0o644, name) for name in ("a", "b", "run")}
    if ending == "zip":
        with zipfile.ZipFile(archives[0]) as packed:
            found = {entry.filename: (entry.external_attr >> 16 & 0o777, packed.read(entry).decode()) for entry in packed.infolist()}
            assert {entry.date_time for entry in packed.infolist()} == {(2025, 6, 15, 15, 6, 40)}
    else:
        with tarfile.open(archives[0]) as packed:
            found = {entry.name: (entry.mode, packed.extractfile(entry).read().decode()) for entry in packed if entry.isreg()}
            assert {(entry.uid, entry.gid, entry.mtime) for entry in packed} == {(0, 0, 1_750_000_000)}
            assert packed.getmember("lib/link").linkname == "a"
    assert found == wanted
