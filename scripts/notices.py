#!/usr/bin/env python3
"""Writes THIRD-PARTY-NOTICES.txt: the licences of everything that is linked into an artefact of a release, on any platform.

usage: scripts/notices.py
"""

import json
import re
import sys
import tomllib
from pathlib import Path

import sbom

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD-PARTY-NOTICES.txt"
# cargo-about is under MIT OR Apache-2.0.
VERSION = "0.9.3"
PACKAGES = ["frazil-c", "frazil-python", "frazil-node", "frazil-server", "frazil-cli"]
HEAD = """Third-party notices

The binaries of frazil contain the libraries below, under the licences that follow
their names. Where a library offers several licences, one of them is given. A binary
contains only some of the libraries: the list of crates that comes with it names them.
"""
# The licences of Rust's standard library (Unicode's is for its tables), each with a crate that has the same text.
STANDARD_LIBRARY = {"Apache-2.0": "libc", "Unicode-3.0": "unicode-properties"}
# Copyright holders of crates without a file of MIT's licence, and of libraries other than crates. Two libraries that Zig links need no
# notice: the licence of LLVM's unwinder has an exception, and mingw-w64's startup code is in the public domain.
MIT = {
    "napi": "Copyright (c) 2020-present LongYinan",
    "napi-sys": "Copyright (c) 2020-present LongYinan",
    "compiler_builtins of Rust's standard library, https://github.com/rust-lang/compiler-builtins": """\
Copyright (c) 2009-2016 by the contributors listed in CREDITS.TXT of LLVM's compiler-rt
Copyright (c) 2018 Jorge Aparicio
Copyright (c) 2005-2020 Rich Felker, et al.
Copyright (c) 1993,2004 Sun Microsystems
Copyright (c) 2003-2011 David Schultz
Copyright (c) 2003-2009 Steven G. Kargl
Copyright (c) 2003-2009 Bruce D. Evans
Copyright (c) 2008 Stephen L. Moshier
Copyright (c) 2017-2018 Arm Limited""",
    "musl, in frazil-server, https://musl.libc.org": "Copyright (c) 2005-2020 Rich Felker, et al.",
    "Zig's compiler_rt, on Linux and in Godot's extension, https://ziglang.org": "Copyright (c) Zig contributors",
}


def linked():
    """Returns the name and version of each foreign crate that is linked into an artefact of a release."""
    first, *others = tomllib.loads((ROOT / "about.toml").read_text("utf-8"))["targets"]
    targets = [word for target in others for word in ("--target", target)]
    crates = set().union(*(sbom.linked(package, first, targets) for package in PACKAGES))
    return {(name, version) for name, version in crates if name.partition("-")[0] != "frazil"}


def named(notices):
    """Returns the name and version of each crate that the notices, given as text, name."""
    return set(re.findall(r"^(\S+) (\d\S*), https://", notices, re.MULTILINE))


def copyrights(text):
    """Returns the lines of a text that name a holder of the copyright."""
    return re.findall(r"^[ /*#]*((?:Portions .*)?Copyright (?!License|notice|[\[{]).*?)[ */]*$", text, re.MULTILINE)


def mit(holders):
    """Returns the text of MIT's licence with these copyright lines."""
    return re.sub(r"^Copyright .*", holders, (ROOT / "LICENSE-MIT").read_text("utf-8"))


def isc_of_ring(folder):
    """Returns the ISC licence with the copyright holders of all of ring's sources under it; ring's licence file names only its author."""
    heads = [path.read_text("utf-8").partition("Permission to use, copy") for path in folder.rglob("*.[rchi]*")]
    holders = {line for head, licence, _ in heads if licence for line in copyrights(head) if "Brian Smith" not in line}
    return "\n".join(sorted(holders)) + "\n" + (folder / "LICENSE-other-bits").read_text("utf-8")


def found():
    """Yields each licence that cargo-about finds in a crate: identifier, name, crate, text, and the copyright holders that the text
    does not name."""
    sbom.output("cargo", "fetch", "--locked")
    # With --frozen, cargo-about contacts no server.
    about = sbom.tool("cargo-about", VERSION, "--features", "cli")
    for licence in json.loads(sbom.output(about, "generate", "--workspace", "--frozen", "--fail", "--format", "json"))["licenses"]:
        for crate in (its["crate"] for its in licence["used_by"]):
            text, holders, folder = licence["text"], [], Path(crate["manifest_path"]).parent
            if licence["id"] == "Apache-2.0":
                # The terms are the same in every copy. The appendix after them may name a holder, but need not.
                holders = copyrights(text.partition("Licensed under the Apache License")[0])
                text = (ROOT / "LICENSE-APACHE").read_text("utf-8")
                if crate["name"] == "ring":
                    holders += copyrights((folder / "third_party/fiat/LICENSE").read_text("utf-8"))
            elif crate["name"] == "ring":
                text = isc_of_ring(folder)
            elif "<copyright holders>" in text and crate["name"] in MIT:
                text = mit(MIT[crate["name"]])
            yield licence["id"], licence["name"], crate, text, holders


def notices(crates):
    """Returns the text of the file for these crates."""
    sections, titles = {}, {}

    def add(identifier, text, library, holders=()):
        # Texts that differ only in white space count as one.
        _, libraries = sections.setdefault((identifier, " ".join(text.split())), (text, {}))
        libraries.setdefault(library, []).extend(holders)

    for identifier, title, crate, text, holders in found():
        titles[identifier] = title
        name, version = crate["name"], crate["version"]
        if (name, version) in crates:
            add(identifier, text, f"{name} {version}, {crate['repository'] or f'https://crates.io/crates/{name}'}", holders)
        if STANDARD_LIBRARY.get(identifier) == name:
            add(identifier, text, "Rust's standard library and the crates in it, https://github.com/rust-lang/rust")
    for library, holders in MIT.items():
        if "https://" in library:
            add("MIT", mit(holders), library)

    parts = [HEAD]
    for (identifier, _), (text, libraries) in sorted(sections.items(), key=lambda its: (its[0][0], -len(its[1][1]), sorted(its[1][1]))):
        listed = [line for library in sorted(libraries) for line in [library, *(f"    {holder}" for holder in libraries[library])]]
        lines = [line.rstrip() for line in text.strip("\n").splitlines()]
        parts.append("\n".join(["=" * 80, f"{titles[identifier]} ({identifier})", "", *listed, "-" * 80, *lines, ""]))
    return "\n".join(parts)


def main():
    crates = linked()
    text = notices(crates)
    missing = crates - named(text)
    if missing or "<copyright holders>" in text:
        sys.exit(f"THIRD-PARTY-NOTICES.txt has no licence of {missing}, or one without a copyright: see MIT in scripts/notices.py")
    FILE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
