"""Plants many bugs into one Rust build. Each function body that bugs change becomes a choice between the original and the changed bodies,
by the number in FRAZIL_PLANTED."""

import re
import string
from itertools import pairwise
from pathlib import Path

SWITCH = """
/// The number of the planted bug that acts, or 0.
pub(crate) fn planted() -> u32 {
    static NUMBER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var("FRAZIL_PLANTED").map_or(0, |number| number.parse().expect("a number")))
}

/// Leaves a file, which shows that the code of a planted bug ran.
pub(crate) fn planted_acts() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| drop(std::env::var_os("FRAZIL_PLANTED_ACTS").map(|path| std::fs::write(path, "").expect("a file"))));
}
"""
# Comments, texts and characters (not lifetimes), whose braces do not count.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|b?r(?P<marks>\#*)".*?"(?P=marks)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\\n])'""", re.DOTALL)

# A text or character, a word, or a sign.
PART = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\\n])'|\w+|\S""")
WORD = frozenset(string.ascii_letters + string.digits + "_")


class CannotPlant(Exception):
    """The list of bugs does not fit the code."""


def plant(sources: list[Path], bugs: list[list[tuple[str, str]]]) -> None:
    """Plants bugs into crates, given by their `src` folders. The first bug has the number 1. Each bug is a list of changes: a piece of
    code that occurs exactly once in all crates, within a function, and its replacement."""
    texts = {path: path.read_text() for source in sources for path in sorted(source.rglob("*.rs"))}
    codes = {path: without_comments(text) for path, text in texts.items()}
    files: dict[Path, list[tuple[int, str, str]]] = {}
    for number, edits in enumerate(bugs, 1):
        for old, new in edits:
            found = [path for path, code in codes.items() for _ in places(old, code)]
            if len(found) != 1:
                names = ", ".join(map(str, found))
                raise CannotPlant(f"{old!r} occurs {len(found)} times in the code: {names or 'in no file'}")
            files.setdefault(found[0], []).append((number, old, new))
    for path, edits in files.items():
        path.write_text(switched(texts[path], edits, path.name))
    for source in sources:
        root = source / "lib.rs"
        root.write_text(root.read_text() + SWITCH)


def switched(text: str, edits: list[tuple[int, str, str]], file: str) -> str:
    """Returns a file's text with the bugs in it, each active only for its number."""
    bodies, code = functions(text), without_comments(text)
    changed: dict[tuple[int, int], dict[int, str]] = {}
    for number, old, new in edits:
        place = the_place(old, code, file)
        around = [(begin, end) for begin, end in bodies if begin < place.start() and place.end() < end]
        if not around:
            raise CannotPlant(f"{old!r} is not within one function of {file}")
        # A nested function is changed together with the outermost one.
        body = min(around)
        variants = changed.setdefault(body, {})
        variant = variants.get(number, text[slice(*body)])
        place = the_place(old, without_comments(variant), f"{file} where the bug's changes before it are made")
        variants[number] = variant[: place.start()] + new + variant[place.end() :]
    for begin, end in sorted(changed, reverse=True):
        arms = "".join(f"{number} => {{ crate::planted_acts(); {body} }}\n" for number, body in changed[begin, end].items())
        text = f"{text[:begin]}{{ match crate::planted() {{ {arms}_ => {text[begin:end]} }} }}{text[end:]}"
    return text


def without_comments(text: str) -> str:
    """Returns the code with comments replaced by spaces."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]) if found[0].startswith("/") else found[0], text)


def places(piece: str, code: str) -> list[re.Match]:
    """Finds the places of a piece of code. Spaces between its parts do not count."""
    parts = PART.findall(piece)
    # A search for the longest part first is much faster.
    if max(parts, key=len) not in code:
        return []
    gaps = [r"\s+" if before[-1] in WORD and after[0] in WORD else r"\s*" for before, after in pairwise(parts)]
    pattern = "".join(re.escape(part) + gap for part, gap in zip(parts, [*gaps, ""], strict=True))
    return [*re.finditer((r"\b" if parts[0][0] in WORD else "") + pattern + (r"\b" if parts[-1][-1] in WORD else ""), code)]


def the_place(piece: str, code: str, name: str) -> re.Match:
    """Finds the only place of a piece of code, or fails."""
    found = places(piece, code)
    if len(found) != 1:
        raise CannotPlant(f"{piece!r} occurs {len(found)} times in {name}")
    return found[0]


def functions(text: str) -> list[tuple[int, int]]:
    """Returns the ranges of the bodies of functions, including their braces."""
    code = NO_CODE.sub(lambda found: " " * len(found[0]), text)
    opened, found = [], []
    for brace in re.finditer(r"[{}]", code):
        if brace[0] == "{":
            opened.append(brace.start())
        else:
            begin = opened.pop()
            if re.search(r"\bfn\s+\w+", header(code, begin)):
                found.append((begin, brace.end()))
    return found


def header(code: str, end: int) -> str:
    """Returns the text between the item before and a brace. A `;` within brackets belongs to an array."""
    depth = 0
    for at in range(end - 1, -1, -1):
        if code[at] in ")]":
            depth += 1
        elif code[at] in "([":
            depth -= 1
        elif depth == 0 and code[at] in ";{}":
            return code[at + 1 : end]
    return code[:end]
