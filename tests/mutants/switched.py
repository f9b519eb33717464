"""Plants many bugs into one build of Rust: each function body that bugs change becomes a choice between itself and what they make of it, by the
number that FRAZIL_PLANTED gives."""

import re
from pathlib import Path

SWITCH = """
/// The number of the planted bug that acts, or 0.
pub(crate) fn planted() -> u32 {
    static NUMBER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var("FRAZIL_PLANTED").map_or(0, |number| number.parse().expect("a number")))
}

/// Leaves a file that tells that the code of a planted bug ran.
pub(crate) fn planted_acts() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| drop(std::env::var_os("FRAZIL_PLANTED_ACTS").map(|path| std::fs::write(path, "").expect("a file"))));
}
"""
# Comments, texts and characters (not lifetimes): no brace in them counts.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|b?r(?P<marks>\#*)".*?"(?P=marks)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\\n])'""", re.DOTALL)


class CannotPlant(Exception):
    """The list of bugs does not fit the code."""


def plant(source: Path, bugs: list[list[tuple[str, str, str]]]) -> None:
    """Plants bugs into the crate whose `src` this is: bug 1 is the first. Each is a list of a file, a text that stands in it exactly once within a
    function, and what replaces it."""
    files: dict[str, list[tuple[int, str, str]]] = {}
    for number, edits in enumerate(bugs, 1):
        for file, old, new in edits:
            files.setdefault(file, []).append((number, old, new))
    for file, edits in files.items():
        path = source / file
        path.write_text(switched(path.read_text(), edits, file))
    root = source / "lib.rs"
    root.write_text(root.read_text() + SWITCH)


def switched(text: str, edits: list[tuple[int, str, str]], file: str) -> str:
    """The text of a file in which each of the bugs waits for its number."""
    bodies = functions(text)
    changed: dict[tuple[int, int], dict[int, str]] = {}
    for number, old, new in edits:
        if text.count(old) != 1:
            raise CannotPlant(f"{old!r} stands {text.count(old)} times in {file}")
        at = text.index(old)
        around = [(begin, end) for begin, end in bodies if begin < at and at + len(old) < end]
        if not around:
            raise CannotPlant(f"{old!r} is not within one function of {file}")
        # A function within another goes with the outermost one.
        body = min(around)
        variants = changed.setdefault(body, {})
        variant = variants.get(number, text[slice(*body)])
        if variant.count(old) != 1:
            raise CannotPlant(f"{old!r} stands {variant.count(old)} times in {file} where the bug's changes before it are made")
        variants[number] = variant.replace(old, new)
    for begin, end in sorted(changed, reverse=True):
        arms = "".join(f"{number} => {{ crate::planted_acts(); {body} }}\n" for number, body in changed[begin, end].items())
        text = f"{text[:begin]}{{ match crate::planted() {{ {arms}_ => {text[begin:end]} }} }}{text[end:]}"
    return text


def functions(text: str) -> list[tuple[int, int]]:
    """Where the bodies of functions begin and end, their braces included."""
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
    """What stands between the item before and a brace; a `;` within brackets is an array's."""
    depth = 0
    for at in range(end - 1, -1, -1):
        if code[at] in ")]":
            depth += 1
        elif code[at] in "([":
            depth -= 1
        elif depth == 0 and code[at] in ";{}":
            return code[at + 1 : end]
    return code[:end]
