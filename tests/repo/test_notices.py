"""The crates in a release's artefacts: their licences (scripts/notices.py), and the documents that list them (scripts/sbom.py)."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import notices

TEXT = notices.FILE.read_text("utf-8")
# Each licence with its crates and its text.
SECTIONS = [section.partition(f"{'-' * 80}\n")[::2] for section in TEXT.split(f"{'=' * 80}\n")[1:]]
# Words that occur only in this licence.
WORDS = {
    "Apache-2.0": "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION",
    "BSD-2-Clause": "Redistribution and use in source and binary forms",
    "BSD-3-Clause": "to endorse or promote products derived from",
    "BSL-1.0": "Boost Software License",
    "CDLA-Permissive-2.0": "Community Data License Agreement",
    "ISC": "Permission to use, copy, modify, and/or distribute this software",
    "MIT": "Permission is hereby granted, free of charge",
    "Unicode-3.0": "UNICODE LICENSE V3",
    "Zlib": "This software is provided 'as-is'",
}
ABOUT = tomllib.loads((ROOT / "about.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def linked():
    return notices.linked()


def test_each_crate_that_is_linked_in_is_named_and_no_other(linked):
    named = notices.named(TEXT)
    assert len(linked) > 100
    assert named == linked, f"run scripts/notices.py: missing {sorted(linked - named)}, no longer linked {sorted(named - linked)}"


def test_each_licence_has_its_text():
    for head, text in SECTIONS:
        identifier = re.match(r".* \((.+)\)$", head.splitlines()[0])[1]
        assert WORDS[identifier] in " ".join(text.split()), head


def test_a_crate_with_several_licences_at_once_has_all(linked):
    metadata = subprocess.run(["cargo", "metadata", "--locked", "--format-version=1"], cwd=ROOT, check=True, capture_output=True)
    licences = {(its["name"], its["version"]): its["license"] for its in json.loads(metadata.stdout)["packages"]}
    several = [crate for crate in linked if " AND " in licences[crate]]
    assert several
    for name, version in several:
        assert sum(f"\n{name} {version}, " in head for head, _ in SECTIONS) > 1, name


def test_all_targets_of_a_release_count():
    released = re.findall(r"\{ target: (\S+),", (ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    assert released and set(released) <= set(ABOUT["targets"])


def test_the_accepted_licences_are_those_of_cargo_deny():
    allowed = tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))["licenses"]["allow"]
    assert sorted(ABOUT["accepted"]) == sorted(allowed)


def test_libraries_other_than_crates_have_their_licence():
    for library, holder in (
        ("tikv-jemalloc-sys", "Copyright (C) 2002-present Jason Evans"),
        ("ring", "Copyright 2015-2020 the fiat-crypto authors"),
        ("ring", "Copyright (c) 2014, Intel Corporation."),
        ("napi-sys", "Copyright (c) 2020-present LongYinan"),
        ("Rust's standard library", "Copyright © 1991-"),
        ("musl", "Copyright (c) 2005-2020 Rich Felker, et al."),
        ("Zig's compiler_rt", "Copyright (c) Zig contributors"),
    ):
        assert [its for its in TEXT.split(f"{'=' * 80}\n") if f"\n{library}" in its and holder in its], library
    # A licence's template has this in place of its holders.
    assert "<copyright holders>" not in TEXT


ARTEFACTS = [("frazil-c", []), ("frazil-c", ["--no-default-features"]), ("frazil-python", []), ("frazil-node", []), ("frazil-server", [])]


def sbom(*words, **environment):
    subprocess.run([ROOT / "scripts/sbom.py", *words], check=True, env=os.environ | environment)
    return json.loads(pathlib.Path(words[0]).read_text())


def crates(document):
    return {(its["name"], its["version"]) for its in [document["metadata"]["component"], *document["components"]]}


@pytest.mark.parametrize("package, features", ARTEFACTS, ids=["c", "lean", "python", "node", "server"])
def test_an_artefacts_document_names_each_crate_that_is_linked_in(package, features, tmp_path):
    target = "aarch64-unknown-linux-musl"
    document = sbom(tmp_path / "sbom.json", package, *features, TARGET=target)
    tree = ["cargo", "tree", "--locked", "--package", package, "--target", target, "--edges", "normal,no-proc-macro", "--prefix", "none"]
    output = subprocess.run([*tree, *features], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [line.split()[:2] for line in output.splitlines()]
    assert crates(document) == {(name, version.removeprefix("v")) for name, version in names}
    assert ("sqlx" in dict(crates(document))) == (not features), "the generator alone does not know the lean library"

    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert document["metadata"]["properties"] == [{"name": "cdx:rustc:sbom:target:triple", "value": target}]
    references = {its["bom-ref"] for its in [document["metadata"]["component"], *document["components"]]}
    assert len(references) == len(document["components"]) + 1
    assert {its["ref"] for its in document["dependencies"]} == references
    assert {other for its in document["dependencies"] for other in its["dependsOn"]} < references
    for its in document["components"]:
        assert its["purl"].startswith(f"pkg:cargo/{its['name']}@{its['version']}") and its["licenses"]
        assert ("hashes" in its) != its["name"].startswith("frazil"), "of what is downloaded"
    # The document names no folder of this machine, and the generator's files are removed.
    assert "file:" not in (tmp_path / "sbom.json").read_text()
    assert not list(ROOT.glob("*/sbom-*.json"))


def test_documents_of_several_platforms_are_merged(tmp_path):
    targets = ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "aarch64-apple-darwin"]
    each = [sbom(tmp_path / target, "frazil-c", TARGET=target) for target in targets]
    merged = sbom(tmp_path / "merged", "--merge", *(tmp_path / target for target in targets))
    assert crates(merged) == set().union(*map(crates, each)) != crates(each[0])
    assert [its["value"] for its in merged["metadata"]["properties"]] == targets
    for document in each:
        for its in document["dependencies"]:
            [found] = [other for other in merged["dependencies"] if other["ref"] == its["ref"]]
            assert set(its["dependsOn"]) <= set(found["dependsOn"])
