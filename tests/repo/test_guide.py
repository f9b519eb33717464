"""The guide: every error has a section, links work, pictures agree with their script, the site builds."""

import json
import pathlib
import re
import subprocess
import sys

import frazil
import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
ERRORS = json.loads((ROOT / "tests/vectors/errors.json").read_text())["errors"]
# The codes that only the command line has: cli/src/code.rs.
COMMANDS = ["INPUT", "INPUT_CHANGED", "OUTPUT", "INTERRUPTED"]
FENCED = r"^```.*?^```$"
TRANSLATIONS = [ROOT / "README.zh-CN.md", ROOT / "README.ja.md"]
PAGES = [ROOT / "README.md", *TRANSLATIONS, ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def sections(page):
    """Returns the headings of the second level, with the text below each."""
    parts = re.split(r"^## (.*)\n", (DOCS / page).read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_start_page_installs_what_make_package_prints():
    printed = re.findall(
        r'^echo "(npm install|pip install|tar -xzf) \$\((?:echo|ls) "\$PWD"/(\S+?)(?: \||\)")',
        (ROOT / "tests/runner/plans.py").read_text(),
        re.MULTILINE,
    )
    assert len(printed) == 3
    page = (DOCS / "start.md").read_text()
    for command, files in printed:
        pattern = re.escape(f"{command} ~/frazil/{files}").replace(r"\*", r"\S+")
        assert re.search(f"^{pattern}", page, re.MULTILINE), (command, files)


def test_every_error_has_a_section():
    names = [*(error["name"] for error in ERRORS), *COMMANDS]
    assert list(sections("errors.md")) == names
    listed = re.findall(r"^\| (\d*) *\| \[(\w+)\]", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert listed == [
        *((str(error["code"]), error["name"]) for error in ERRORS),
        *(("", name) for name in COMMANDS),
    ]


@pytest.mark.parametrize("name", list(sections("errors.md")))
def test_a_section_of_an_error_begins_with_its_meaning_and_the_steps(name):
    paragraphs = sections("errors.md")[name].strip().split("\n\n")
    assert paragraphs[0].startswith("**Means.** ") and any(paragraph.startswith("**Do.** ") for paragraph in paragraphs[1:-1])
    assert paragraphs[-1].startswith("- `")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error["name"])
def test_an_error_can_be_looked_up(error):
    """The section has the error's number, its names in every language, and texts that are in the code."""
    name, section = error["name"], sections("errors.md")[error["name"]]
    camel = "".join(word.capitalize() for word in name.split("_"))
    names = f"{error['code']} · Python `{camel}Error` · C `FRAZIL_{name}` · C++ `errc::{name.lower()}` · Rust `ErrorKind::{camel}`"
    assert names in section.replace("\n·", " ·")
    assert issubclass(getattr(frazil.errors, f"{camel}Error"), frazil.FrazilError)
    check_texts(name, section)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_code_of_commands_can_be_looked_up(name):
    section = sections("errors.md")[name]
    assert f"`error[{name}]: ...`" in section and f'"{name}"' in (ROOT / "cli/src/code.rs").read_text()
    check_texts(name, section)


def check_texts(name, section):
    """Checks that the code contains each text that a section quotes."""
    code = "".join(
        path.read_text()
        for crate in ("core", "core/base", "core/store", "cli", "python", "node", "c-api", "server")
        for path in sorted((ROOT / crate / "src").rglob("*.rs"))
    )
    # Joins continued Rust strings, and unescapes their quotation marks.
    code = re.sub(r"\\\n\s*", "", code).replace('\\"', '"')
    texts = re.findall(r"^- `(.*)`$", section, re.MULTILINE)
    assert texts, "the section quotes a text"
    for text in texts:
        pieces = [piece for piece in text.split("…") if len(piece) > 3]
        assert pieces, text
        for piece in pieces:
            assert piece in code, f"{name}: no error says {piece!r}"


def slug(heading):
    """Returns GitHub's anchor of a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(path):
    """Returns what a link can name in a file: the headings of a page, or the lines of a source file."""
    if path.suffix != ".md":
        return {f"L{number + 1}" for number, line in enumerate(path.read_text().splitlines()) if line.strip()}
    prose = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", prose, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} does not exist"
        assert not anchor or anchor in anchors(file), f"{target}: there is no such heading"


SAMPLES = [
    *PAGES,
    *(ROOT / name for name in ("python/README.md", "node/README.md", "c-api/README.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
# With these, each process has its own store, so processes repeat each other's IDs.
OWN_STORE = r"mkdtemp|TemporaryDirectory|tempfile|tmpdir|mktemp|file:/tmp|store\W{1,4}memory"


@pytest.mark.parametrize("page", SAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sample_has_a_store_for_each_process(page):
    for code in re.findall(r"^ *```\w+\n(.*?)^ *```$|^(    \S[^\n]*)$", page.read_text(), re.MULTILINE | re.DOTALL):
        found = re.search(OWN_STORE, "".join(code))
        assert not found, f"{found[0]}: write store=local, or env:DATABASE_URL"


@pytest.mark.parametrize(
    "text", ['store="memory"', "{ store: 'memory' }", "store=memory", "store=f'file:{tempfile.mkdtemp()}'", "file:/tmp/a"]
)
def test_a_store_for_each_process_is_found(text):
    assert re.search(OWN_STORE, text)


# The beginnings of lines that may be too long, because a program prints or stores them.
PRINTED = ('{"fields":{"datacenter":11,', "1 nonce=9f0c66e1d1a4b7f2 ", "DeprecationWarning: This process ")


def long_lines(page):
    """Returns the lines of a page's code, fenced or indented, with more than 80 columns."""
    code = r"^ *```[^\n]*\n(.*?)^ *```$|(?<=\n\n)((?:    [^\n]*\n)+)"
    blocks = re.findall(code, page.read_text(), re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in "".join(block).splitlines() if len(line.expandtabs()) > 80]


@pytest.mark.parametrize("page", [*SAMPLES, *sorted(DOCS.glob("site/*.md"))], ids=lambda page: str(page.relative_to(ROOT)))
def test_code_wraps_at_80_columns(page):
    long = [line for line in long_lines(page) if not line.startswith(PRINTED)]
    assert not long, long[0]


def test_a_program_prints_each_long_line():
    """Each exception of `PRINTED` is still needed."""
    printed = [line for page in SAMPLES for line in long_lines(page)]
    for start in PRINTED:
        assert any(line.startswith(start) for line in printed), start


def test_every_page_is_in_the_contents():
    listed = re.findall(r"^- \[.*\]\((\S+\.md)\)$", (DOCS / "index.md").read_text(), re.MULTILINE)
    pages = {path.name for path in DOCS.glob("*.md")} - {"index.md"}
    assert sorted(name for name in listed if not name.startswith("..")) == sorted(pages)


def test_a_page_has_the_same_name_in_the_contents_and_as_its_heading():
    listed = re.findall(r"^- \[(.*)\]\((\S+\.md)\)$", (DOCS / "index.md").read_text(), re.MULTILINE)
    headings = {name: (DOCS / name).read_text().partition("\n")[0] for _, name in listed if not name.startswith("..")}
    assert headings == {name: f"# {title}" for title, name in listed if name in headings}


def test_the_alerts_use_exported_metrics_and_each_has_its_remedy():
    rules = re.search(r"^```yaml\n(groups:.*?)^```$", (DOCS / "observability.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    asked = set(re.findall(r"\bfrazil_\w+", rules))
    assert asked and asked <= {metric.prometheus for metric in frazil.METRICS}
    alerts = re.findall(r"- alert: (\w+)\n +expr: \S", rules)
    assert len(alerts) == rules.count("alert:") and sorted(alerts) == sorted(
        re.findall(r"^\| `(\w+)`", sections("operations.md")["Alerts"], re.MULTILINE)
    )


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 160
    assert next(number for number, line in enumerate(lines, 1) if line.startswith("```")) <= 25, "code comes first"


def skeleton(page):
    """Returns the parts of a page that a translation keeps. The order of links and of a row's figures may differ."""
    text = page.read_text()
    prose = re.sub(FENCED, "", text, flags=re.MULTILINE | re.DOTALL)
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    return {
        "code": re.findall(FENCED, text, re.MULTILINE | re.DOTALL),
        "links": sorted(target for target in re.findall(r"\]\(([^)]+)\)", prose) if not target.startswith("README")),
        "cells": [row.count("|") for row in rows],
        "figures": [sorted(re.findall(r"\d+(?:[.,]\d+)*", row)) for row in rows],
        "headings": re.findall(r"^#+", prose, re.MULTILINE),
    }


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: page.name)
def test_a_translation_has_the_same_code_links_and_figures(page):
    assert skeleton(page) == skeleton(ROOT / "README.md")


def test_the_pictures_are_what_the_script_draws():
    subprocess.run([sys.executable, DOCS / "pictures/draw.py", "--check"], check=True)
    subprocess.run([sys.executable, ROOT / "bench/plot.py", "--check"], check=True)


SCREENSHOTS = sorted(path for path in (DOCS / "pictures").glob("*.png") if not path.stem.endswith("_dark"))


@pytest.mark.parametrize("picture", SCREENSHOTS, ids=lambda path: path.name)
def test_a_screenshot_is_small_and_shown_with_a_text_and_has_a_dark_one(picture):
    for path in (picture, picture.with_stem(f"{picture.stem}_dark")):
        assert path.stat().st_size <= 150_000, f"{path.name} is too large: make it smaller in record_pages.py"
    shown = [
        match for page in SAMPLES for match in re.findall(rf"^!\[(.*)\]\(\S*pictures/{picture.name}\)$", page.read_text(), re.MULTILINE)
    ]
    assert shown and all(len(text) > 20 for text in shown)


def test_the_site_builds(built_site):
    site = built_site
    index = (site / "index.html").read_text()
    assert "errors.html" in index and "concepts.html" in index and "site/texts/example-fastapi.html" in index
    start = (site / "start.html").read_text()
    assert start.count('data-sync-group="language"') == 5, "each language is a tab"
    example = (site / "site/texts/example-fastapi.html").read_text()
    for scheme, name in (("light", "board.png"), ("dark", "board_dark.png")):
        assert re.search(rf'href="../../_images/{name}"><img[^>]* class="pictures only-{scheme}"', example), "each theme has its picture"
    assert (site / "_images/board_dark.png").exists()
    assert 'id="c.frazil_snowflake_open"' in (site / "site/c.html").read_text()
    node = (site / "site/node.html").read_text()
    assert "Opens the generator" in node and node.count("discardAsync</strong>") == 1, "a member is described at one class"
    assert index.count("toctree-l1") == start.count("toctree-l1"), "the contents are beside the text, and not also in it"
    assert re.search(r'<meta [^>]*content="64-bit IDs that sort by time', index), "a page has a description"
    assert "favicon.svg" in index and "_static/social.png" in index and "copybutton.js" in index


def test_a_phone_gets_narrow_pictures_and_cards(built_site):
    speed, guarantees = ((built_site / f"{page}.html").read_text() for page in ("speed", "guarantees"))
    shown = re.findall(r'srcset="(_images/\w+_narrow\.svg)"', speed)
    assert len(shown) == len(re.findall(r'<img [^>]*class="speed"', speed)) > 5, "each plot has a narrow form"
    assert all((built_site / path).exists() for path in shown)
    assert '<td data-column="as long as">' in guarantees
    # A row whose first cell is empty has the name of the row above.
    assert '<p class="again">PostgreSQL</p>' in guarantees
