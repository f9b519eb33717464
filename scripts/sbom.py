#!/usr/bin/env python3
"""Writes a CycloneDX document of the crates that are linked into a release artefact.

usage: [TARGET=triple] scripts/sbom.py FILE PACKAGE [FEATURE-ARGUMENT]...: of a package of the workspace as it is built for TARGET, which
           is this machine unless it is given; TARGET=all is for every platform together
       scripts/sbom.py FILE --merge DOCUMENT...: of all artefacts whose documents are named
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# cargo-cyclonedx is under Apache-2.0; maturin includes the same generator.
VERSION = "0.5.9"
SPECIFICATION = "1.5"


def output(*command):
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return done.stdout


def tool(name, version, *options):
    """Returns the path of a program of crates.io. Installs it into build if it is missing, not optimised, because it runs for a second."""
    folder = ROOT / f"build/{name}-{version}"
    if not (folder / "installed").exists():
        # These variables are for a release's target, but the program runs on this machine.
        of_the_target = ("CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_UNSTABLE_BUILD_STD")
        env = {name: value for name, value in os.environ.items() if name not in of_the_target}
        install = ["cargo", "install", "--debug", "--quiet", "--locked", "--force", "--root", folder, *options, f"{name}@{version}"]
        subprocess.run(install, cwd=ROOT, check=True, env=env | {"CARGO_PROFILE_DEV_DEBUG": "0"}, stdout=sys.stderr)
        (folder / "installed").touch()
    return folder / "bin" / name


def linked(package, target, features):
    """Returns the name and version of each crate that is linked into a package, including the package itself."""
    selected = ["--package", package, "--target", target, *features]
    tree = output("cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}", *selected)
    return set(re.findall(r"^(\S+) v(\S+)", tree, re.MULTILINE))


def generate(package, target, features):
    """Returns the generator's document of a package. It lists the crates of the whole workspace's features."""
    # The generator writes a file next to each manifest of the workspace.
    name = f"sbom-{os.getpid()}"
    # A copy of the tree has no history, so the caller sets the time.
    if "SOURCE_DATE_EPOCH" not in os.environ:
        os.environ["SOURCE_DATE_EPOCH"] = output("git", "log", "-1", "--format=%ct").strip()
    metadata = json.loads(output("cargo", "metadata", "--locked", "--no-deps", "--format-version=1"))
    manifests = {its["name"]: Path(its["manifest_path"]) for its in metadata["packages"]}
    options = ["--format", "json", "--spec-version", SPECIFICATION, "--no-build-deps", "--override-filename", name]
    try:
        manifest = ["--manifest-path", manifests[package]]
        output(tool("cargo-cyclonedx", VERSION), "cyclonedx", "--quiet", *manifest, "--target", target, *options, *features)
        return json.loads(manifests[package].with_name(f"{name}.json").read_text("utf-8"))
    finally:
        for path in manifests.values():
            path.with_name(f"{name}.json").unlink(missing_ok=True)


def document(package, target, features):
    """Returns the document of the crates that are linked into a package, without a folder of this machine."""
    made = generate(package, target, features)
    crates = linked(package, target, features)
    root = made["metadata"]["component"]
    # The components name files in this folder.
    del root["components"]
    made["components"] = [its for its in made["components"] if (its["name"], its["version"]) in crates]
    missing = crates - {(its["name"], its["version"]) for its in [root, *made["components"]]}
    if missing:
        sys.exit(f"cargo-cyclonedx does not name {missing}, which cargo tree names for {package}")

    [repository] = re.findall(r'^repository = "(.*)"$', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE)
    references = {}
    for its in [root, *made["components"]]:
        name = f"{its['name']}@{its['version']}"
        references[its["bom-ref"]] = its["bom-ref"]
        if its["bom-ref"].startswith("path+"):
            references[its["bom-ref"]] = name
            its |= {"bom-ref": name, "purl": f"pkg:cargo/{name}?vcs_url=git%2B{repository}"}
    made["dependencies"] = [
        {"ref": references[its["ref"]], "dependsOn": [references[other] for other in its.get("dependsOn", []) if other in references]}
        for its in made["dependencies"]
        if its["ref"] in references
    ]
    return made


def merge(documents):
    """Merges documents whose root is the same package on several platforms."""
    merged, *others = documents
    components = {its["bom-ref"]: its for its in merged["components"]}
    edges = {its["ref"]: set(its["dependsOn"]) for its in merged["dependencies"]}
    for other in others:
        if other["metadata"]["component"] != merged["metadata"]["component"]:
            sys.exit("the documents are of different packages")
        merged["metadata"]["properties"] += other["metadata"]["properties"]
        components |= {its["bom-ref"]: its for its in other["components"]}
        for its in other["dependencies"]:
            edges.setdefault(its["ref"], set()).update(its["dependsOn"])
    merged["components"] = [its for _, its in sorted(components.items())]
    merged["dependencies"] = [{"ref": ref, "dependsOn": sorted(others)} for ref, others in sorted(edges.items())]
    return merged


def main(file, package, *words):
    if package == "--merge":
        made = merge([json.loads(Path(word).read_text("utf-8")) for word in words])
    else:
        host = re.search(r"^host: (.*)$", output("rustc", "-vV"), re.MULTILINE)[1]
        made = document(package, os.environ.get("TARGET") or host, words)
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
