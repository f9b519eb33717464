"""The guide as a site: Sphinx reads the Markdown of docs/ as it stands. scripts/guide.sh builds it."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/frazil/frazil/blob/main/"

project = "frazil"
extensions = ["myst_parser"]
exclude_patterns = ["site", "pictures"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "frazil"
html_copy_source = html_show_copyright = html_show_sphinx = False
# Languages of code blocks that the highlighter does not know.
suppress_warnings = ["misc.highlighting_failure"]


def out_of_the_guide(page, source):
    """Links to the repository's other files become links to where it is hosted; a file that is not there is an error."""

    def link(match):
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
        if pages := re.findall(r"^- \[(.*)\]\((\w\S*)\.md\)$", text, re.MULTILINE):
            lines = "\n".join(f"{name} <{page}>" for name, page in pages)
            trees.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n")
    return "\n" + "\n".join(trees)


def read(app, page, source):
    source[0] = out_of_the_guide(page, source[0])
    if page == "index":
        source[0] += contents(source[0])


def setup(app):
    app.connect("source-read", read)


# The same guide gives the same site.
os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
