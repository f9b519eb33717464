#!/usr/bin/env python3
"""Shortens the pages that typedoc has made: a member is its signature, its text and one line for each other part. It is described once, at the
class that declares it.

typescript.py FOLDER
"""

import re
import sys
from pathlib import Path

HEADING = re.compile(r"^(#{3,6}) (.*)$", re.MULTILINE)
# Headings that name no member. The text below them needs none.
UNNAMED = ("Accessors", "Call Signature", "Constructors", "Example", "Get Signature", "Methods", "Properties")
# Parts that readers see elsewhere: in the signature, or at the class that has them first.
DROPPED = ("Extended by", "Inherited from", "Overrides", "Type Parameters")
# Parts that become one line after their name.
LABELS = ("Extends", "Implements", "Parameters", "Returns", "Throws")
# The members of a class in the order of need.
ORDER = ("Example", "Constructors", "Methods", "Accessors", "Properties")
SIGNATURE = re.compile(r"^> (.*)$", re.MULTILINE)
# What a signature shows only to the compiler: the type of `this`, the bounds and defaults of a function's type parameters.
COMPILED = re.compile(
    r"`this`: (?:\*typeof\* \S+|\[`Extending`\]\S+ \*typeof\* \S+\\>|new \(.*?\) => `\w+`), "
    r"|(?<=`) \*extends\* (?:`\w+`|new \(.*?\) => \S+?\)|\[`\w+`\]\(\S+?\))(?: = (?:`\w+`|\[`\w+`\]\(\S+?\)(?:\\<`\w+`\\>)?))?"
    r"|\\<`ArrayBufferLike`\\>"
)


def sections(text: str, level: int) -> list[tuple[str, str]]:
    """Returns each title of a level with the text below it; the text before the first one has no title."""
    parts = re.split(rf"^{'#' * level} (.*)\n", text, flags=re.MULTILINE)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def in_order(declaration: str) -> str:
    """Sorts the parts of a class or an interface by `ORDER`; all other parts stay in front. Leaves out inherited members."""
    parts = [(title, own(text)) for title, text in sections(declaration, 4)]
    parts.sort(key=lambda part: ORDER.index(part[0]) + 1 if part[0] in ORDER else 0)
    return "".join(f"#### {title}\n{text}" if title else text for title, text in parts)


def own(part: str) -> str:
    """Returns a part of a class without the members that another class describes."""
    members = [(name, text) for name, text in sections(part, 5) if "\n###### Inherited from\n" not in text]
    return "".join(f"##### {name}\n{text}" if name else text for name, text in members)


def signature(match: re.Match[str]) -> str:
    """A signature as one paragraph, whose types are links. A getter is shown as the property that its callers see."""
    text = match[1]
    if re.search(r"\*\*(?:\\<.*?\\>)?\(", text):
        text = COMPILED.sub("", text)
    text = re.sub(r"^\*\*get\*\* (\*\*\w+\*\*)\(\): ", r"`readonly` \1: ", text)
    return f"```{{div}} signature\n{text}\n```"


def shorten(text: str) -> str:
    """Replaces headings that name no member, and raises those of members to the level of the heading above."""
    shown, owner = [], ""
    parts = HEADING.split(text)
    shown.append(parts[0])
    for hashes, title, below in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if len(hashes) == 3:
            owner = re.sub(r"`\w+` ", "", title)
        if title in DROPPED:
            continue
        elif title in UNNAMED:
            shown.append(below.lstrip("\n"))
        elif title == "Returns" and "\n" not in below.strip():
            # The signature shows the type.
            continue
        elif title in LABELS:
            below = below.strip()
            if title == "Parameters" and "| Description |" not in below:
                # The signature shows the types.
                continue
            if title == "Extends":
                below = f"{below.removeprefix('- ')}, whose members it has."
            shown.append(f"**{title}**{chr(10) * 2 if below.startswith('|') else ' '}{below}\n\n")
        elif title == "Constructor":
            shown.append(f"#### new {owner}(){below}")
        else:
            shown.append(f"{'#' * min(len(hashes), 4)} {title}{below}")
    return "".join(shown)


def tidied(page: str) -> str:
    # Sphinx joins these pages into one, so links between them lose their file name.
    page = page.replace("(index.md#", "(#")
    # Headings divide the declarations.
    page = page.replace("\n***\n", "\n")
    groups = []
    for title, text in sections(page, 2):
        declarations = "".join(f"### {name}\n{in_order(body)}" if name else body for name, body in sections(text, 3))
        groups.append(f"## {title}\n{shorten(declarations)}" if title else shorten(declarations))
    return SIGNATURE.sub(signature, "".join(groups))


def main(folder: str) -> None:
    for page in Path(folder).glob("*.md"):
        page.write_text(tidied(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1])
