"""The guide as a site: Sphinx reads the Markdown of docs/ as it stands. scripts/guide.sh builds it."""

import __future__

import os
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/frazil/frazil/blob/main/"

project = "frazil"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["pictures"]
autodoc_member_order = "bysource"
default_role = "code"
myst_heading_anchors = 4
html_theme = "furo"
html_title = "frazil"
smartquotes = False
html_copy_source = html_show_copyright = html_show_sphinx = False
# Languages of code blocks that the highlighter does not know.
suppress_warnings = ["misc.highlighting_failure"]

# Files of the repository that are pages of the site.
REFERENCE = {
    "../python/frazil/_frazil.pyi": "site/python.md",
    "../node/index.d.ts": "site/node.md",
    "../include/frazil.h": "site/c.md",
    "../include/frazil.hpp": "site/cpp.md",
}


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


def out_of_the_guide(page, source):
    """Links to the repository's other files become links to where it is hosted; a file that is not there is an error."""

    def link(match):
        if match[2] in REFERENCE:
            return f"{match[1]}{REFERENCE[match[2]]}{match[3] or ''}"
        path = (ROOT / "docs" / match[2]).resolve()
        if not path.exists():
            raise FileNotFoundError(f"docs/{page}.md links to {match[2]}, which does not exist")
        return f"{match[1]}{REPOSITORY}{path.relative_to(ROOT)}{match[3] or ''}"

    return re.sub(r"(\]\(|^\[[^]]+\]: )(\.\./[^)#\s]+)(#[^)\s]*)?", link, source, flags=re.MULTILINE)


def contents(source):
    """The lists of index.md, as the site's table of contents."""
    parts = re.split(r"^## (.*)\n", source, flags=re.MULTILINE)[1:]
    trees = []
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if pages := re.findall(r"^- \[([^]]*)\]\((\w\S*)\.md\)", text, re.MULTILINE):
            lines = "\n".join(f"{name} <{page}>" for name, page in pages)
            trees.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n")
    return "\n" + "\n".join(trees)


def read(app, page, source):
    if not page.startswith("site/"):
        source[0] = out_of_the_guide(page, source[0])
    if page == "index":
        source[0] += contents(source[0])


def setup(app):
    stubs()
    app.connect("source-read", read)


# The same guide gives the same site.
os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
