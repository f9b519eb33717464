"""The guide as a site: Sphinx reads the Markdown of docs/ as it stands. scripts/guide.sh builds it."""

import __future__

import os
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/frazil/frazil/blob/main/"

project = "frazil"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_design", "hawkmoth"]
exclude_patterns = ["pictures"]
autodoc_member_order = "bysource"
default_role = "code"
myst_heading_anchors = 6
html_theme = "furo"
html_title = "frazil"
html_static_path = ["static"]
html_css_files = ["guide.css"]
smartquotes = False
html_copy_source = html_show_copyright = html_show_sphinx = False
# Languages of code blocks that the highlighter does not know.
suppress_warnings = ["misc.highlighting_failure"]
hawkmoth_root = str(ROOT / "include")
hawkmoth_clang = ["-I" + subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()]

# Files of the repository that are pages of the site: what the languages' reference is made of, and texts that lie beside the code.
REFERENCE = {
    "python/frazil/_frazil.pyi": "site/python.md",
    "node/index.d.ts": "site/node.md",
    "include/frazil.h": "site/c.md",
    "include/frazil.hpp": "site/cpp.md",
}
TEXTS = {page.stem: (ROOT / page.read_text().strip()) for page in sorted((DOCS / "site/texts").glob("*.md"))}
PAGES = {(ROOT / file).resolve(): page for file, page in REFERENCE.items()}
PAGES |= {file: f"site/texts/{name}.md" for name, file in TEXTS.items()}

# The words that people type into the search box, where the pages say it otherwise.
SEARCHED = {
    "compare": ["uuid vs snowflake", "ulid vs snowflake", "uuid vs bigint", "uuid vs bigserial", "sonyflake", "leaf"],
    "concepts": ["clock back", "clock backwards", "clock rollback", "how snowflake ids work"],
    "production": ["worker id", "worker id kubernetes", "machine id", "datacenter id"],
    "questions": ["duplicate key", "duplicate ids", "javascript rounds", "predictable ids"],
    "layouts": ["when do ids run out", "41 bits", "custom epoch"],
    "guarantees": ["fork", "gunicorn fork", "restore a backup", "uniqueness"],
}

# A link or an image, `](target#anchor)` or `[name]: target#anchor`.
TARGET = re.compile(r"(\]\(|^\[[^]]+\]: )(?!\w+:)([^)#\s]+)(#[^)\s]*)?", re.MULTILINE)
LANGUAGES = {"python": "Python", "js": "Node", "c": "C", "cpp": "C++", "rust": "Rust"}
NAMES = "|".join(LANGUAGES)
FENCE = rf"^```(?:{NAMES})\n(?:(?!^```$).*\n)*```\n"


def stubs():
    """The module `frazil` as its stubs say: nothing has to be built for it."""
    path = ROOT / "python/frazil/_frazil.pyi"
    array = type("ndarray", (), {"__class_getitem__": lambda *_: array})
    sys.modules["numpy"] = SimpleNamespace(ndarray=array)
    module = sys.modules["frazil"] = ModuleType("frazil")
    module.__file__, module.__loader__ = str(path), SourceFileLoader("frazil", str(path))
    exec(compile(path.read_text(), path, "exec", __future__.annotations.compiler_flag), module.__dict__)
    # In the stubs' order.
    module.__all__ = [name for name in vars(module) if name in module.__all__]
    for name in ("errors", "uuid", "objectid"):
        part = sys.modules[f"frazil.{name}"] = ModuleType(f"frazil.{name}")
        part.__all__ = re.findall(r'"(\w+)"', (path.parent / f"{name}.py").read_text().partition("__all__ = ")[2])
        vars(part).update((each, vars(module)[each]) for each in part.__all__)


def linked(file, source):
    """The text of a file, whose links lead to the site's pages, or to where the repository is hosted; one to nowhere is an error."""

    def link(match):
        path = (file.parent / match[2]).resolve()
        if not path.exists():
            raise FileNotFoundError(f"{file.relative_to(ROOT)} links to {match[2]}, which does not exist")
        if path in PAGES:
            to = f"/{PAGES[path]}"
        elif path.is_relative_to(DOCS) and path.is_file():
            to = f"/{path.relative_to(DOCS)}"
        else:
            to = f"{REPOSITORY}{path.relative_to(ROOT)}"
        return f"{match[1]}{to}{match[3] or ''}"

    code = r"(^ *```.*?^ *```$)"
    parts = re.split(code, source, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if number % 2 else TARGET.sub(link, part) for number, part in enumerate(parts))


def pictured(source, page):
    """A picture that stands alone opens in full; a screenshot has another one, for dark pages. Those of a folder have its name as their
    class."""
    up = "../" * page.count("/")

    def shown(match):
        alt, folder, name, ending = match.groups()
        image = "```{{image}} /{0}/{1}\n:alt: {2}\n:class: {0}{3}\n:target: {4}_images/{1}\n```".format
        dark = f"{name}_dark.{ending}"
        if not (DOCS / folder / dark).exists():
            return image(folder, f"{name}.{ending}", alt, "", up)
        return image(folder, f"{name}.{ending}", alt, " only-light", up) + "\n\n" + image(folder, dark, alt, " only-dark", up)

    return re.sub(r"^!\[([^]]*)\]\(/(\w+)/(\w+)\.(svg|png)\)$", shown, source, flags=re.MULTILINE)


def tabs(items):
    """Tabs, of which the site remembers the language that was chosen."""
    shown = "".join(f"````{{tab-item}} {name}\n:sync: {key}\n\n{text}\n````\n" for name, key, text in items)
    return f"`````{{tab-set}}\n:sync-group: language\n\n{shown}`````\n"


def tabbed(source):
    """Samples in several languages, one after the other, become tabs."""

    def as_tabs(match):
        fences = re.findall(FENCE, match[0], re.MULTILINE)
        languages = [fence[3 : fence.index("\n")] for fence in fences]
        if len(set(languages)) < len(languages):
            return match[0]
        return tabs((LANGUAGES[language], language, fence) for language, fence in zip(languages, fences, strict=True))

    return re.sub(rf"(?:{FENCE}\n*){{2,}}", as_tabs, source, flags=re.MULTILINE)


def first_steps(source):
    """The sections of the start page, each of one language, become tabs."""
    head, *parts = re.split(r"^## (.*)\n", source, flags=re.MULTILINE)
    sections = list(zip(parts[::2], parts[1::2], strict=True))
    keys = {"Python": "python", "Node": "js", "C and C++": "cpp", "Rust": "rust", "Any other language": "other"}
    slug = "({})=\n".format
    shown = tabs((name, keys[name], slug(name.lower().replace(" ", "-")) + "\n" + text) for name, text in sections if name in keys)
    rest = "".join(f"## {name}\n{text}" for name, text in sections if name not in keys)
    return f"{head}{shown}\n{rest}"


def searched(page, source):
    """The search finds a page first by these words."""
    return "".join(f"```{{index}} ! {words}\n```\n\n" for words in SEARCHED.get(page, ())) + source


def contents(source):
    """The lists of index.md, as the site's table of contents."""
    parts = re.split(r"^## (.*)\n", source, flags=re.MULTILINE)[1:]
    trees = []
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if pages := re.findall(r"^- \[([^]]*)\]\(/(\S+)\.md\)", text, re.MULTILINE):
            lines = "\n".join(f"{name} </{page}>" for name, page in pages)
            trees.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n")
    return "\n" + "\n".join(trees)


def read(app, page, source):
    file = TEXTS[Path(page).name] if page.startswith("site/texts/") else DOCS / f"{page}.md"
    text = pictured(linked(file, file.read_text()), page)
    if page == "start":
        text = first_steps(text)
    if page == "index":
        text += contents(text)
    source[0] = searched(page, tabbed(text))


def c_comment(app, lines, transform, options):
    """A name that ends with an underscore is no link."""
    lines[:] = [re.sub(r"(?<![\w`])(\w+_)(?![\w`])", r"`\1`", line) for line in lines]


def setup(app):
    stubs()
    app.connect("source-read", read)
    app.connect("hawkmoth-process-docstring", c_comment)


# The same guide gives the same site.
os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
