"""The packages for .NET and game engines that packaging/engines.sh lays out, by the rules of their formats."""

import configparser
import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from xml.etree import ElementTree

import pytest
from conftest import HOST, NOTICES, ROOT, VERSION

GUIDE = (ROOT / "docs/c-cpp.md").read_text()
STAND_INS = ROOT / "tests/package/stand_ins"
GODOT = os.environ.get("FRAZIL_GODOT")
ARCHIVES = {"unity": "tgz", "godot": "zip", "unreal": "zip"}
OPC = "{http://schemas.openxmlformats.org/package/2006/%s}"
NUSPEC = "{http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd}"
# The checksum of Microsoft's nuget.exe 5.8.0.
NUGET_SHA256 = "5c5b9c96165d3283b2cb9e5b65825d343e0e7139b9e70a250b4bb24c2285f3ba"
TARGETS = [f"{processor}-unknown-linux-{libc}" for processor in ("x86_64", "aarch64") for libc in ("gnu", "musl")]
TARGETS += ["armv7-unknown-linux-gnueabihf", "armv7-unknown-linux-musleabihf"]
TARGETS += ["x86_64-apple-darwin", "aarch64-apple-darwin", "x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"]


@pytest.fixture(scope="session")
def out(prefix, run, tmp_path_factory):
    """Makes the packages for this machine."""
    out = tmp_path_factory.mktemp("engines")
    run(ROOT, "packaging/engines.sh", out, f"{HOST}={prefix}")
    return out


@pytest.fixture(scope="session")
def every(out, prefix, tmp_path_factory):
    """Makes the packages for every system of a release, with dummy libraries and a dummy linker."""
    folder = tmp_path_factory.mktemp("every")
    libraries = ["lib/libfrazil.so", "lib/libfrazil.dylib", "lib/frazil.dll.lib", "bin/frazil.dll"]
    for file in [*libraries, "include/frazil.h", "include/frazil.hpp"]:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(file)
    (folder / "python-zig").write_text("#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\necho linked > $1\n")
    (folder / "python-zig").chmod(0o755)
    (folder / "cc").symlink_to("python-zig")
    targets = [f"{target}={folder}" for target in TARGETS]
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    subprocess.run([ROOT / "packaging/engines.sh", folder / "out", *targets], check=True, env=os.environ | path)
    return folder / "out"


@pytest.fixture(scope="session")
def archives(packages, prefix, tmp_path_factory):
    """Returns a folder with a release's C archives, and the packages that `scripts/release.sh engines` makes from them."""
    if packages and (packages / "engines").exists():
        return packages
    folder = tmp_path_factory.mktemp("archives")
    if packages:
        shutil.copytree(packages / "c", folder / "c")
    else:
        (folder / "c").mkdir()
        name = f"frazil-{VERSION}-{HOST}"
        with tarfile.open(folder / f"c/{name}.tar.gz", "w:gz", compresslevel=1) as archive:
            archive.add(prefix, name)
        subprocess.run([ROOT / "scripts/sbom.py", folder / f"c/{name}.cdx.json", "frazil-c"], check=True)
    subprocess.run([ROOT / "scripts/release.sh", "engines", folder], check=True)
    return folder


@pytest.fixture(scope="session")
def released(archives, tmp_path_factory):
    """Unpacks the packages of a release."""
    folder, out = archives / "engines", tmp_path_factory.mktemp("released")
    names = {f"Frazil.{VERSION}.nupkg", *(f"frazil-{name}-{VERSION}.{end}" for name, end in ARCHIVES.items())}
    assert {path.name for path in folder.iterdir()} == names | {f"frazil-engines-{VERSION}.cdx.json"}
    for name in names:
        if name.endswith(".nupkg"):
            (out / "nuget").mkdir()
            shutil.copy(folder / name, out / "nuget")
        else:
            shutil.unpack_archive(folder / name, out / name.split("-")[1])
    [package] = (out / "unity").iterdir()
    assert package.name == "package"
    package.rename(out / "moved")
    (out / "unity").rmdir()
    (out / "moved").rename(out / "unity")
    return out


@pytest.fixture(params=["out", "every", "released"])
def laid_out(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def nupkg(laid_out):
    [path] = (laid_out / "nuget").iterdir()
    assert path.name == f"Frazil.{VERSION}.nupkg"
    with zipfile.ZipFile(path) as package:
        yield package


def test_the_nupkg_is_an_open_packaging_container(nupkg):
    assert nupkg.testzip() is None
    names = nupkg.namelist()
    assert len({name.lower() for name in names}) == len(names), "parts are equal by ASCII without regard to case"
    types = ElementTree.fromstring(nupkg.read("[Content_Types].xml"))
    assert types.tag == OPC % "content-types" + "Types"
    endings = [default.get("Extension") for default in types.iter(OPC % "content-types" + "Default")]
    assert len(set(endings)) == len(endings)
    assert {name.rpartition(".")[2] for name in names} <= set(endings), "each part has a content type"
    [manifest] = ElementTree.fromstring(nupkg.read("_rels/.rels")).iter(OPC % "relationships" + "Relationship")
    assert manifest.get("Type") == "http://schemas.microsoft.com/packaging/2010/07/manifest" and manifest.get("Id")
    assert manifest.get("Target").removeprefix("/") in names


def test_the_nuspec_and_the_folders_of_the_nupkg(nupkg):
    metadata = ElementTree.fromstring(nupkg.read("Frazil.nuspec")).find(NUSPEC + "metadata")
    text = {element.tag.removeprefix(NUSPEC): (element.text or "").strip() for element in metadata}
    assert text["id"] == "Frazil" and text["version"] == VERSION and text["authors"] and text["description"]
    assert text["license"] == "MIT OR Apache-2.0" and nupkg.read("LICENSE.txt") and nupkg.read(text["readme"])
    [group] = metadata.iter(NUSPEC + "group")
    [assembly] = [name for name in nupkg.namelist() if re.fullmatch(r"lib/netstandard2\.0/\w+\.dll", name)]
    assert group.get("targetFramework") == ".NETStandard2.0"
    natives = [name.split("/") for name in nupkg.namelist() if name.startswith("runtimes/")]
    # All files of a system are in one folder, in which Windows and macOS do not distinguish Frazil.dll from frazil.dll.
    assert all(len(parts) == 4 and parts[2] == "native" and parts[3].lower() != assembly.split("/")[-1].lower() for parts in natives)


def test_the_licences_are_in_every_package(laid_out, nupkg):
    packages = {
        "unity": ("LICENSE.md", "Third Party Notices.md"),
        "godot/addons/frazil": ("LICENSE.txt", "THIRD-PARTY-NOTICES.txt"),
        "unreal/Frazil": ("LICENSE.txt", "THIRD-PARTY-NOTICES.txt"),
    }
    for folder, (own, others) in packages.items():
        assert (laid_out / folder / own).read_bytes() == nupkg.read("LICENSE.txt")
        assert (laid_out / folder / others).read_bytes() == NOTICES
    assert nupkg.read("THIRD-PARTY-NOTICES.txt") == NOTICES


def test_every_platform_has_its_library(every):
    [package] = (every / "nuget").iterdir()
    with zipfile.ZipFile(package) as archive:
        natives = [name for name in archive.namelist() if name.startswith("runtimes/")]
    rids = ["linux-arm", "linux-arm64", "linux-musl-arm", "linux-musl-arm64", "linux-musl-x64", "linux-x64"]
    rids += ["osx-arm64", "osx-x64", "win-arm64", "win-x64"]
    assert sorted(name.split("/")[1] for name in natives) == rids
    assert len(gdextension(every)["libraries"]) == 7


def test_the_release_has_the_library_of_every_archive(archives, released):
    """Each package has the bytes of its platform's archive, and lists the crates in them."""
    natives = {}
    for path in archives.glob(f"c/frazil-{VERSION}-*.tar.gz"):
        target = path.name.removeprefix(f"frazil-{VERSION}-").removesuffix(".tar.gz")
        if target.endswith("-lean"):
            continue
        with tarfile.open(path) as archive:
            [library] = [member for member in archive if member.isreg() and re.search(r"\.(so|dylib|dll)(\.|$)", member.name)]
            natives[target] = archive.extractfile(library).read()
    [package] = (released / "nuget").iterdir()
    with zipfile.ZipFile(package) as archive:
        held = [archive.read(name) for name in archive.namelist() if name.startswith("runtimes/")]
    assert natives and sorted(held) == sorted(natives.values())
    for engine in ("unity", "godot", "unreal"):
        paths = [path for path in (released / engine).rglob("*frazil.*") if re.search(r"\.(so|dylib|dll)(\.|$)", path.name)]
        libraries = [path.read_bytes() for path in paths if not path.name.endswith((".meta", ".lib"))]
        assert libraries and set(libraries) <= set(natives.values())
    [document] = archives.glob("engines/*.cdx.json")
    properties = json.loads(document.read_text())["metadata"]["properties"]
    assert sorted(its["value"] for its in properties) == sorted(natives)


def test_nugets_client_validates_and_installs(out, run, packages, tmp_path):
    if not packages:
        pytest.skip("needs all of Mono, which `make package` installs")
    run(tmp_path, "npm", "pack", "nuget-exe@5.8.0")
    run(tmp_path, "tar", "-xzf", "nuget-exe-5.8.0.tgz")
    client = tmp_path / "package/nuget-5.8.0.exe"
    assert hashlib.sha256(client.read_bytes()).hexdigest() == NUGET_SHA256
    nuget = ["mono", client]
    run(tmp_path, *nuget, "install", "Frazil", "-Source", out / "nuget", "-OutputDirectory", "installed", "-Framework", "net8.0")
    [installed] = (tmp_path / "installed").iterdir()
    assert installed.name == f"Frazil.{VERSION}" and (installed / "lib/netstandard2.0/FrazilSharp.dll").is_file()
    # The schema of this NuGet version does not have `readme`.
    [package] = (out / "nuget").iterdir()
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path / "layout")
    manifest = tmp_path / "layout/Frazil.nuspec"
    manifest.write_text(re.sub(r"<readme>.*</readme>", "", manifest.read_text()))
    assert "Successfully created package" in run(tmp_path, *nuget, "pack", manifest, "-NoDefaultExcludes")
    manifest.write_text(manifest.read_text().replace("authors>", "author>"))
    assert "invalid child element 'author'" in run(tmp_path, *nuget, "pack", manifest, fails=True)


MINT = """
using System;
using System.Collections.Generic;
using Frazil;

public static class Mint
{
    public static void Main()
    {
        using (var ids = Snowflake.Open("twitter datacenter=1 worker=7"))
        {
            var many = new long[999];
            ids.Fill(many);
            var parts = ids.Decode(ids.Next());
            var all = new HashSet<long>(many) { parts.Id };
            var age = DateTimeOffset.UtcNow.ToUnixTimeMilliseconds() - parts.UnixMs;
            var id = (long)(parts.Tick << 22 | parts.Node << 12 | parts.Sequence);
            Console.WriteLine("{0} {1} {2} {3}", all.Count, parts.Node, Math.Abs(age) < 5000, id == parts.Id);
            try { ids.Decode(-1); } catch (FrazilException error) { Console.WriteLine(error.Code); }
            ids.Dispose();
            try { ids.Next(); } catch (ObjectDisposedException) { Console.WriteLine("disposed"); }
        }
    }
}
"""


def test_csharp_with_the_nupkg(out, run, example, monkeypatch, tmp_path):
    """Runs the guide's program and another one, with the assembly and the library where NuGet puts them."""
    assert example("csharp", "docs/c-cpp.md") == example("csharp", "packaging/csharp/README.md")
    [package] = (out / "nuget").iterdir()
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    [library] = tmp_path.glob("runtimes/*/native")
    monkeypatch.setenv("MONO_PATH", str(tmp_path / "lib/netstandard2.0"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    outputs = {}
    for name, code in {"Loot": example("csharp", "docs/c-cpp.md"), "Mint": MINT}.items():
        (tmp_path / f"{name}.cs").write_text(code)
        run(tmp_path, "mcs", "-warnaserror", f"{name}.cs", "-r:lib/netstandard2.0/FrazilSharp.dll")
        outputs[name] = subprocess.run(["mono", tmp_path / f"{name}.exe"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert outputs["Mint"] == ["1000 39 True True", "105", "disposed"]
    first, refused = outputs["Loot"]
    assert re.fullmatch(r"\d{15,19} of server 4711", first)
    assert refused.startswith("103: server=-1 is out of range: 20 bits allow the integers 0 to 1048575")


def test_the_manifest_of_unity(laid_out):
    """Checks by Unity's manual: https://docs.unity3d.com/Manual/upm-manifestPkg.html"""
    manifest = json.loads((laid_out / "unity/package.json").read_text())
    assert re.fullmatch(r"com\.[a-z0-9-_]+\.[a-z0-9-_]+", manifest["name"]) and len(manifest["name"]) <= 50
    assert manifest["version"] == VERSION and re.fullmatch(r"\d{4}\.\d", manifest["unity"])
    strings = {"name", "version", "unity", "displayName", "description", "documentationUrl", "license"}
    assert set(manifest) == strings | {"keywords", "author"} and all(isinstance(manifest[key], str) for key in strings)
    assert set(manifest["author"]) <= {"name", "email", "url"}
    for file in ("README.md", "CHANGELOG.md", "LICENSE.md"):
        assert (laid_out / "unity" / file).stat().st_size
    assembly = json.loads((laid_out / "unity/Runtime/FrazilSharp.asmdef").read_text())
    assert assembly == {"name": "FrazilSharp", "rootNamespace": "Frazil", "autoReferenced": True, "noEngineReferences": True}


def test_every_file_of_unity_has_settings(laid_out):
    unity = laid_out / "unity"
    guids = {}
    for path in unity.rglob("*"):
        if path.suffix == ".meta":
            assert path.with_suffix("").exists(), f"{path} is of no file"
            continue
        meta = path.with_name(f"{path.name}.meta").read_text()
        assert meta.startswith("fileFormatVersion: 2\nguid: ") and "@" not in meta
        guids[re.search(r"^guid: ([0-9a-f]{32})$", meta, re.MULTILINE)[1]] = path
        assert ("\nfolderAsset: yes\n" in meta) == path.is_dir()
    assert len(guids) == len([path for path in unity.rglob("*") if path.suffix != ".meta"])
    # These IDs never change, because the scenes of projects refer to them.
    assert guids[hashlib.md5(b"com.frazil.frazil/Runtime/Snowflake.cs").hexdigest()].name == "Snowflake.cs"


def test_unity_loads_each_library_only_on_its_system(every):
    found = {}
    for meta in (every / "unity").rglob("Plugins/*/*.meta"):
        text = meta.read_text()
        enabled = re.findall(r"- first:\n +(\w+): ?(\w*)\n +second:\n +enabled: 1\n", text)
        assert "\nPluginImporter:\n" in text and "Any:\n    second:\n      enabled: 0\n" in text
        assert [first for first, _ in enabled] == ["Editor", "Standalone"]
        [processor] = set(re.findall(r"CPU: (\w+)", text))
        found[meta.parent.name] = (meta.stem, re.search(r"OS: (\w+)", text)[1], enabled[1][1], processor)
    assert found == {
        "linux-x64": ("libfrazil.so", "Linux", "Linux64", "x86_64"),
        "osx-x64": ("libfrazil.dylib", "OSX", "OSXUniversal", "x86_64"),
        "osx-arm64": ("libfrazil.dylib", "OSX", "OSXUniversal", "ARM64"),
        "win-x64": ("frazil.dll", "Windows", "Win64", "x86_64"),
    }


def test_ios_links_the_library_into_the_program(out, run, tmp_path):
    source = out / "unity/Runtime/Snowflake.cs"
    run(tmp_path, "mcs", "-warnaserror", "-target:library", "-define:UNITY_IOS", "-out:ios.dll", source)
    run(tmp_path, "mcs", "-warnaserror", "-target:library", "-define:UNITY_IOS", "-define:UNITY_EDITOR", "-out:editor.dll", source)
    assert b"\0__Internal\0" in (tmp_path / "ios.dll").read_bytes()
    assert b"\0__Internal\0" not in (tmp_path / "editor.dll").read_bytes()


UNREAL = """
using UnrealBuildTool;

public static class Try
{
    public static void Main(string[] of)
    {
        var module = new Frazil(new ReadOnlyTargetRules { Platform = (UnrealTargetPlatform)System.Enum.Parse(typeof(UnrealTargetPlatform), of[0]) });
        module.PublicSystemIncludePaths.ForEach(System.Console.WriteLine);
        module.PublicAdditionalLibraries.ForEach(System.Console.WriteLine);
        module.RuntimeDependencies.Sources.ForEach(System.Console.WriteLine);
    }
}
"""


def test_unreals_module_names_its_files(every, run, tmp_path):
    module = every / "unreal/Frazil"
    (tmp_path / "Try.cs").write_text(UNREAL)
    run(tmp_path, "mcs", "-warnaserror", "Try.cs", module / "Frazil.Build.cs", STAND_INS / "UnrealBuildTool.cs")
    named = set()
    for platform in ("Win64", "Mac", "Linux", "LinuxArm64"):
        include, linked, loaded = run(module, "mono", tmp_path / "Try.exe", platform).splitlines()
        assert include == "include" and linked != loaded
        named |= {linked, loaded}
    assert {str(path.relative_to(module)) for path in module.rglob("lib/*/*")} == named


def gdextension(laid_out):
    # In Godot's ConfigFile, values are literals. Strings have quotation marks.
    config = configparser.ConfigParser(delimiters="=", interpolation=None, strict=True)
    config.read_string((laid_out / "godot/addons/frazil/frazil.gdextension").read_text())
    return config


def test_the_gdextension_file(laid_out):
    """Checks by Godot's manual: tutorials/scripting/gdextension/gdextension_file"""
    config, addon = gdextension(laid_out), laid_out / "godot/addons/frazil"
    assert config.sections() == ["configuration", "libraries", "dependencies"]
    assert dict(config["configuration"]) == {"entry_symbol": '"frazil_godot_init"', "compatibility_minimum": '"4.4"'}
    assert list(config["libraries"]) == list(config["dependencies"])
    named = set()
    for feature, library in config["libraries"].items():
        assert re.fullmatch(r"(linux|macos|windows)\.(x86_64|arm64|arm32)", feature)
        [dependency] = json.loads(config["dependencies"][feature])
        named |= {json.loads(library), dependency}
    assert {str(path.relative_to(addon)) for path in addon.rglob("bin/*/*")} == named


def test_the_gdextension_loads_and_refuses_an_engine_without_its_functions(out, prefix, run, tmp_path):
    [library] = (out / "godot/addons/frazil").glob("bin/*/*_godot.so")
    nowhere = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(lambda name: None)
    assert ctypes.CDLL(str(library)).frazil_godot_init(nowhere, None, None) == 0
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include"]
    run(tmp_path, "cc", *strict, "-c", ROOT / "packaging/godot/frazil_godot.c")


def test_godot_mints(out, run, example, tmp_path):
    if not GODOT:
        pytest.skip("needs Godot 4.4 or later, which Debian's stable release does not have: FRAZIL_GODOT is its command")
    (tmp_path / "addons").symlink_to(out / "godot/addons")
    (tmp_path / "project.godot").write_text("config_version=5\n")
    # The editor would write this list. Without a window, it can crash at its end with any extension: godotengine/godot#111048.
    (tmp_path / ".godot").mkdir()
    (tmp_path / ".godot/extension_list.cfg").write_text("res://addons/frazil/frazil.gdextension\n")
    (tmp_path / "loot.gd").write_text(example("gdscript", "docs/c-cpp.md"))
    (tmp_path / "mint.gd").symlink_to(ROOT / "tests/package/mint.gd")
    headless = [GODOT, "--headless", "--path", ".", "--script"]
    lines = run(tmp_path, *headless, "mint.gd").splitlines()
    assert [line for line in lines if re.match("(before|typed|untyped|time|count|decode): ", line)] == [
        "before: -106 ids is NULL, open: 0",
        "typed: 1000",
        "untyped: 1000",
        "time: true",
        "count: 0 0 0",
        "decode: -105 -1 is negative: an ID is 0 to 9223372036854775807",
    ]
    *_, first, refused = run(tmp_path, *headless, "loot.gd").splitlines()
    assert re.fullmatch(r"\d{15,19}, and 1000 at once", first)
    assert refused.startswith("-103: server=-1 is out of range: 20 bits allow the integers 0 to 1048575")
