"""The licences of what is linked into a release's artefacts: THIRD-PARTY-NOTICES.txt, as scripts/notices.py writes it."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import notices

TEXT = notices.FILE.read_text("utf-8")
ABOUT = tomllib.loads((ROOT / "about.toml").read_text("utf-8"))


def test_each_crate_that_is_linked_in_is_named_and_no_other():
    linked, named = notices.linked(), notices.named(TEXT)
    assert len(linked) > 100
    assert named == linked, f"run scripts/notices.py: missing {sorted(linked - named)}, no longer linked {sorted(named - linked)}"


def test_all_targets_of_a_release_count():
    released = re.findall(r"\{ target: (\S+),", (ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    assert released and set(released) <= set(ABOUT["targets"])


def test_the_accepted_licences_are_those_of_cargo_deny():
    allowed = tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))["licenses"]["allow"]
    assert sorted(ABOUT["accepted"]) == sorted(allowed)


def test_code_that_is_no_crate_has_its_licence():
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
    # What stands in a licence's general text for its holders.
    assert "<copyright holders>" not in TEXT
