"""The guide as a site: Sphinx reads the Markdown of docs/ unchanged. scripts/guide.sh builds it."""

import __future__

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace

from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/frazil/frazil/blob/main/"

project = "frazil"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_design", "sphinx_copybutton", "sphinxext.opengraph", "hawkmoth"]
exclude_patterns = ["pictures"]
autodoc_member_order = "bysource"
default_role = "code"
myst_heading_anchors = 6
myst_enable_extensions = ["alert"]
html_theme = "furo"
html_title = "frazil"
html_favicon = "static/favicon.svg"
html_static_path = ["static"]
templates_path = ["templates"]
ogp_site_url = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
ogp_enable_meta_description = True
ogp_image = "_static/social.png"
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
TEXTS = {
    "c-conventions": ROOT / "c-api/README.md",
    "changelog": ROOT / "CHANGELOG.md",
    "example-django": ROOT / "examples/django/README.md",
    "example-fastapi": ROOT / "examples/fastapi/README.md",
    "example-fastify-drizzle": ROOT / "examples/fastify-drizzle/README.md",
    "example-game-server": ROOT / "examples/game-server/README.md",
    "example-nestjs-prisma": ROOT / "examples/nestjs-prisma/README.md",
    "node-package": ROOT / "node/README.md",
    "python-package": ROOT / "python/README.md",
}
PAGES = {(ROOT / file).resolve(): page for file, page in REFERENCE.items()}
PAGES |= {file: f"site/texts/{name}.md" for name, file in TEXTS.items()}
# Sphinx makes pages only of files below docs/. `read` replaces the content of these.
(DOCS / "site/texts").mkdir(exist_ok=True)
for name in TEXTS:
    (DOCS / f"site/texts/{name}.md").touch()

# The words that people type into the search box, where a page or a section says it otherwise.
SEARCHED = {
    "agents": "llm ai mcp langchain hallucinated digits",
    "assurance": "evidence proof proven verified jepsen formal trust track record known defects audit sceptic",
    "capacity": "scale scaling how many processes nodes max",
    "command-line": "cli shell terminal",
    "compare": "alternatives difference uuid vs snowflake ulid vs snowflake uuid vs bigint bigserial sonyflake leaf ksuid nanoid",
    "concepts": "how snowflake ids work explained",
    "concepts#the-clock-goes-back": "clock backwards rollback skew drift ntp",
    "concepts#what-happens-in-a-fork": "thread safe",
    "development": "unit tests testing localhost slow start fixtures ci",
    "errors": "error codes exceptions",
    "guarantees": "uniqueness collision collide collisions duplicates safe",
    "guarantees#across-a-fork": "fork",
    "guarantees#restored-backups": "restore snapshot point in time recovery",
    "layouts": "when do ids run out 41 bits custom epoch custom layout year 2038",
    "merge-audit": "merge shards game servers duplicates",
    "moving": "migration migrate switch replace",
    "moving#a-change-of-the-layout": "change epoch bits",
    "node-web": "javascript browser",
    "observability": "monitoring prometheus grafana dashboard opentelemetry logging",
    "operations": "runbook disaster recovery outage",
    "other-languages": "java spring mybatis-plus php php-fpm ffi go golang cgo purego",
    "production": "machine id datacenter id deploy",
    "production#kubernetes": "kubernetes worker id k8s pod statefulset helm deployment",
    "production#serverless": "lambda aws cloud run functions faas vercel cloudflare workers",
    "production#web-servers-and-workers": "gunicorn uvicorn fork preload celery pm2 cluster",
    "questions": "faq help",
    "questions#can-ids-be-guessed": "security predictable enumerate expose public url",
    "questions#docker-and-compose": "container docker compose",
    "questions#my-bigint-loses-its-last-digits": "javascript rounds precision number max_safe_integer",
    "questions#several-regions": "multi region multiregion cross region geo active-active",
    "questions#what-is-stable-before-10": "upgrade upgrading version semver breaking changes compatibility rolling",
    "server": "http api rest microservice sidecar",
    "speed": "performance benchmark throughput latency fast ns",
    "speed#threads": "thread safe thread-safe multithreading concurrency",
    "start": "install installation tutorial getting started",
    "stores": "lease leases database redis postgres mysql etcd zookeeper",
    "stores#how-long-a-start-takes": "66 s 66s slow start first start waits redis startup",
    "trial": "snowflake libraries comparison test duplicates npm pypi crates sonyflake tsid flake-idgen",
    "waits": "timeout cancel block hang async",
}

# The pictures that have a narrow form.
sys.path.insert(0, str(DOCS / "pictures"))
from draw import NARROWED as DRAWN

# A link or an image, `](target#anchor)` or `[name]: target#anchor`.
TARGET = re.compile(r"(\]\(|^\[[^]]+\]: )(?!\w+:)([^)#\s]+)(#[^)\s]*)?", re.MULTILINE)
LANGUAGES = {"python": "Python", "js": "Node.js", "c": "C", "cpp": "C++", "rust": "Rust"}
NAMES = "|".join(LANGUAGES)
FENCE = rf"^```(?:{NAMES})\n(?:(?!^```$).*\n)*```\n"
# A sample after the commands that install what it needs.
INSTALLED = FENCE.replace("^", r"^```sh\n(?:(?!^```$).*\n)*```\n\n", 1)


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
    """A picture in a separate paragraph opens in full; a screenshot has another one, for dark pages. Those of a folder have its name as their
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
    """Samples in several languages, one after the other, become tabs. So do samples each of which follows the commands that install it."""
    for sample in (INSTALLED, FENCE):

        def as_tabs(match, sample=sample):
            samples = re.findall(sample, match[0], re.MULTILINE)
            languages = [re.search(rf"^```({NAMES})$", each, re.MULTILINE)[1] for each in samples]
            if len(set(languages)) < len(languages):
                return match[0]
            return tabs((LANGUAGES[language], language, each) for language, each in zip(languages, samples, strict=True))

        source = re.sub(rf"(?:{sample}\n*){{2,}}", as_tabs, source, flags=re.MULTILINE)
    return source


def first_steps(source):
    """The sections of the start page, each of one language, become tabs."""
    head, *parts = re.split(r"^## (.*)\n", source, flags=re.MULTILINE)
    sections = list(zip(parts[::2], parts[1::2], strict=True))
    keys = {"Python": "python", "Node.js": "js", "C and C++": "cpp", "Rust": "rust", "Any other language": "other"}
    slug = "({})=\n".format
    shown = tabs(
        (name, keys[name], slug(name.lower().replace(" ", "-").replace(".", "")) + "\n" + text) for name, text in sections if name in keys
    )
    rest = "".join(f"## {name}\n{text}" for name, text in sections if name not in keys)
    return f"{head}{shown}\n{rest}"


def c_names(source):
    """The names of frazil.h by group: each line of a group holds beginnings of names, in the order of need."""
    header = (ROOT / "include/frazil.h").read_text()
    functions = re.findall(r"^(?!typedef)\w[\w \*]*?\b(frazil_\w+)\(", header, re.MULTILINE)
    types = re.findall(r"^(?:typedef struct \w+ |typedef \w+ |\} )(frazil_\w+);", header, re.MULTILINE)
    structs = set(re.findall(r"^\} (frazil_\w+);", header, re.MULTILINE))
    types += re.findall(r"^typedef .*\(\*(frazil_\w+)\)\(", header, re.MULTILINE)
    kinds = {name: "struct" if name in structs else "type" for name in types} | {name: "function" for name in functions}

    def group(match):
        lines = []
        for begin in match[1].split():
            for name in [name for name in kinds if name == begin or name.startswith(f"{begin}_")]:
                kind = kinds.pop(name)
                lines.append(f".. c:auto{kind}:: {name}\n   :file: frazil.h" + "\n   :members:" * (kind == "struct"))
        return "```{eval-rst}\n" + "\n".join(lines) + "\n```"

    source = re.sub(r"```\{c-names\}\n(.*?)```", group, source, flags=re.DOTALL)
    assert not kinds, f"docs/site/c.md has no group for {list(kinds)}"
    return source


def contents(source):
    """index.md, whose lists become the table of contents beside every page, instead of a second one in the text."""
    head, *parts = re.split(r"^## (.*)\n", source, flags=re.MULTILINE)
    trees = []
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if pages := re.findall(r"^- \[([^]]*)\]\(/(\S+)\.md\)", text, re.MULTILINE):
            lines = "\n".join(f"{name} </{page}>" for name, page in pages)
            trees.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n")
        else:
            head += f"## {title}\n{text}"
    return "\n".join([head, *trees])


def read(app, page, source):
    file = TEXTS[Path(page).name] if page.startswith("site/texts/") else DOCS / f"{page}.md"
    text = pictured(linked(file, file.read_text()), page)
    if page == "start":
        text = first_steps(text)
    if page == "index":
        text = contents(text)
    if page == "site/c":
        text = c_names(text)
    source[0] = tabbed(text)


def c_comment(app, lines, transform, options):
    """A name that ends with an underscore is not a link."""
    lines[:] = [re.sub(r"(?<![\w`])(\w+_)(?![\w`])", r"`\1`", line) for line in lines]


def sections(env):
    """The entries of the search: each section, and each name of a reference, without those within it."""
    parts = (nodes.section, addnodes.desc)
    for page in sorted(env.found_docs):
        document = env.get_doctree(page)
        for node in document.findall(lambda node: isinstance(node, parts)):
            head = next((child for child in node.children if isinstance(child, nodes.title | addnodes.desc_signature)), None)
            # An overload, or a name that has no anchor, belongs to the section around it.
            ids = node["ids"] if isinstance(node, nodes.section) else head["ids"]
            if not ids:
                continue
            is_page = node.parent is document
            inside = [text for text in node.findall(nodes.Text) if next_above(text, parts) is node and not is_within(text, head)]
            # Words are apart where the page has another block, and where it says so.
            blocks = itertools.groupby(inside, lambda text: next_above(text, nodes.Element, nodes.Inline))
            shown = " ".join("".join(text.astext() for text in block) for _, block in blocks)
            title = head.astext() if isinstance(node, nodes.section) else head.get("fullname") or ids[0].rpartition(".")[2]
            yield {
                "id": f"{page}.html" if is_page else f"{page}.html#{ids[0]}",
                "page": env.titles[page].astext(),
                "title": title,
                "words": SEARCHED.get(page if is_page else f"{page}#{node.get('slug')}", ""),
                "text": " ".join(shown.split()),
            }


def next_above(node, kinds, but=()):
    while not isinstance(node, kinds) or isinstance(node, but):
        node = node.parent
    return node


def is_within(node, other):
    while node is not None and node is not other:
        node = node.parent
    return node is not None


def index(app, error):
    """The search's library, and the sections that it reads."""
    if error is None and app.builder.name == "html":
        found = list(sections(app.env))
        unknown = (
            SEARCHED.keys()
            - {page for page in app.env.found_docs}
            - {f"{page}#{node.get('slug')}" for page in app.env.found_docs for node in app.env.get_doctree(page).findall(nodes.section)}
        )
        assert not unknown, f"SEARCHED names what does not exist: {unknown}"
        subprocess.run([sys.executable, DOCS / "pictures/draw.py", "--narrow", Path(app.outdir, "_images")], check=True)
        subprocess.run([sys.executable, ROOT / "bench/plot.py", "--narrow", Path(app.outdir, "_images")], check=True)
        static = Path(app.outdir, "_static")
        shutil.copy(ROOT / "build/guide-node/node_modules/minisearch/dist/umd/index.js", static / "minisearch.js")
        (static / "sections.js").write_text(f"var SECTIONS = {json.dumps(found, ensure_ascii=False, separators=(',', ':'))}\n")


BREAKS = re.compile(r"(::|(?<=\w)[_./](?=[\w*<{]))")


def finish(app, page, template, context, document):
    """Names in code break after `::`, `_`, `.` and `/` only, a phone gets the narrow form of a picture, and what moves sideways can be moved by keys."""
    if body := context.get("body"):
        body = re.sub(r'(<span class="pre">)([^<]+)(</span>)', lambda match: match[1] + BREAKS.sub(r"\1<wbr>", match[2]) + match[3], body)
        body = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
        body = body.replace('<div class="highlight"><pre>', '<div class="highlight"><pre tabindex="0">')
        body = re.sub(r"<table class=\"docutils.*?</table>", carded, body, flags=re.DOTALL)
        context["body"] = re.sub(r'<img [^>]*src="([^"]*/)(\w+)\.svg"[^>]*>', narrowed, body)
    # A heading that is not one of HTML's has no level.
    for tree in ("furo_navigation_tree", "furo_localtoc"):
        if tree in context:
            context[tree] = context[tree].replace('role="heading"', 'role="heading" aria-level="2"')


def carded(match):
    """A table of texts, each of whose rows is a card on a phone: its cells have the names of their columns. Tables of figures move sideways."""
    table = match[0]
    names = [words(cell) for cell in re.findall(r'<th class="head[^>]*>(.*?)</th>', table, re.DOTALL)]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", table, re.DOTALL)
    length = sum(len(words(cell)) for cell in cells) / max(1, len(cells))
    if len(names) < 3 or length < 16 or table.count('<td class="text-right') > 0.34 * len(cells):
        return table
    columns, above = itertools.cycle(names), ""

    def labelled(cell):
        nonlocal above
        name, text = next(columns), cell[2]
        if name is names[0] and "text-right" not in cell[1]:
            # An empty first cell belongs to the row above.
            above = text = text if words(text) else f'<p class="again">{words(above)}</p>'
        return f'<td data-column="{name}"{cell[1]}>{text}</td>' if words(text) else cell[0]

    table = re.sub(r"<td([^>]*)>(.*?)</td>", labelled, table, flags=re.DOTALL)
    return table.replace('class="docutils', 'class="cards docutils', 1)


def words(markup):
    """The text of a piece of HTML, as an attribute has it."""
    return re.sub(r"<[^>]+>", "", markup).strip().replace('"', "&quot;")


def narrowed(match):
    if match[2] not in DRAWN and not (DOCS / f"speed/{match[2]}.svg").exists():
        return match[0]
    return f'<picture><source media="(max-width: 40em)" srcset="{match[1]}{match[2]}_narrow.svg">{match[0]}</picture>'


def setup(app):
    stubs()
    app.connect("source-read", read)
    # After the theme, which makes the menu.
    app.connect("html-page-context", finish, priority=900)
    app.connect("build-finished", index)
    app.connect("hawkmoth-process-docstring", c_comment)


# The same guide gives the same site.
os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
