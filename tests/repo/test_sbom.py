"""The documents that list the crates in a release's artefacts (scripts/sbom.py)."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
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
