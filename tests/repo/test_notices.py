"""THIRD-PARTY-NOTICES.txt, which scripts/notices.py writes: the licences of everything that is linked into a release's artefacts."""

import json
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
