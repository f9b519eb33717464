"""The built guide answers the questions of docs/site/questions.toml within three clicks on links in the pages' bodies."""

import html.parser
import posixpath
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
START = "index.html"
CLICKS_MAX = 3
QUESTIONS = tomllib.loads((ROOT / "docs/site/questions.toml").read_text())["question"]


def plain(text):
    return re.sub(r"\s+", " ", text).strip()


class Body(html.parser.HTMLParser):
    """The body of a page: its links, and the text below each heading."""

    def __init__(self, source):
        super().__init__()
        self.inside, self.link, self.heading = False, None, None
        # (text, target) of each link; [level, heading, text] of each section.
        self.links, self.sections = [], []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "article":
            self.inside = True
        elif tag == "a" and self.inside:
            self.link = ["", attributes.get("href", ""), "headerlink" in (attributes.get("class") or "")]
        elif re.fullmatch("h[1-6]", tag) and self.inside:
            self.heading = ""
        self.add(" " if tag in ("td", "th", "li", "p", "br") else "")

    def handle_endtag(self, tag):
        if tag == "article":
            self.inside = False
        elif tag == "a" and self.link:
            text, target, of_heading = self.link
            if not of_heading:
                self.links.append((plain(text), target))
            self.link = None
        elif re.fullmatch("h[1-6]", tag) and self.heading is not None:
            self.sections.append([int(tag[1]), plain(self.heading), ""])
            self.heading = None

    def handle_data(self, data):
        if self.inside:
            self.add(data)

    def add(self, text):
        # The mark beside a heading links to the heading itself.
        if self.link and self.link[2]:
            return
        if self.link:
            self.link[0] += text
        if self.heading is not None:
            self.heading += text
        elif self.sections:
            self.sections[-1][2] += text

    def below(self, heading):
        """Returns the text of a section, including its subsections, or None if the heading does not exist."""
        for number, (level, name, text) in enumerate(self.sections):
            if name == heading:
                for deeper, _, more in self.sections[number + 1 :]:
                    if deeper <= level:
                        break
                    text += more
                return plain(text)
        return None


def walk(question, pages):
    """Clicks from the start page on. Returns the addresses of the pages, or raises LookupError if a link or the answer is missing.

    `pages` returns the Body of the page at an address.
    """
    at = [START]
    for click in question["clicks"]:
        targets = [target for text, target in pages(at[-1]).links if text == click]
        if not targets:
            raise LookupError(f"{at[-1]} has no link {click!r}")
        path = targets[0].partition("#")[0]
        at.append(posixpath.normpath(posixpath.join(posixpath.dirname(at[-1]), path)) if path else at[-1])
    text = pages(at[-1]).below(question["section"])
    if text is None:
        raise LookupError(f"{at[-1]} has no heading {question['section']!r}")
    if question["says"] not in text:
        raise LookupError(f"{at[-1]} does not say {question['says']!r} below {question['section']!r}")
    return at


@pytest.fixture(scope="module")
def site(built_site):
    """Returns a function from an address of the built site to its page."""
    read = {}

    def page(address):
        if address not in read:
            read[address] = Body((built_site / address).read_text())
        return read[address]

    return page


def test_there_are_twenty_questions():
    assert len({question["asked"] for question in QUESTIONS}) >= 20


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["asked"])
def test_a_question_is_answered_within_three_clicks(question, site):
    assert 1 <= len(question["clicks"]) <= CLICKS_MAX
    walk(question, site)


class Without:
    """A site in which a page lacks a link, or all pages lack a phrase."""

    def __init__(self, site, link=None, phrase=None):
        self.site, self.link, self.phrase = site, link, phrase

    def __call__(self, address):
        found = self.site(address)
        changed = Body("")
        changed.links = [link for link in found.links if (address, link[0]) != self.link]
        changed.sections = [[level, name, plain(text).replace(self.phrase or "\0", "")] for level, name, text in found.sections]
        return changed


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["asked"])
def test_a_missing_link_or_answer_is_noticed(question, site):
    at = walk(question, site)
    for address, click in zip(at, question["clicks"], strict=False):
        with pytest.raises(LookupError, match="has no link"):
            walk(question, Without(site, link=(address, click)))
    with pytest.raises(LookupError, match="does not say"):
        walk(question, Without(site, phrase=question["says"]))
    with pytest.raises(LookupError, match="has no heading"):
        walk({**question, "section": "No such heading"}, site)


def test_only_the_body_counts():
    """Links of the menu, and anchors of headings, do not count as clicks."""
    page = Body(
        '<nav><a href="x.html">menu</a></nav><article><h1>One<a class="headerlink" href="#one">#</a></h1><p>a <a href="b.html">link</a> x</p>'
        "<h2>Two</h2><table><tr><td>b</td><td>c</td></tr></table><h1>Three</h1>d</article><p>after</p>"
    )
    assert page.links == [("link", "b.html")]
    assert [name for _, name, _ in page.sections] == ["One", "Two", "Three"]
    assert (page.below("One"), page.below("Two"), page.below("Three"), page.below("Four")) == ("a link x b c", "b c", "d", None)
