"""Finds the possible mutants of the product's code, which are small changes within functions, and writes many into one copy of the sources."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import switched

ROOT = Path(__file__).resolve().parents[2]
# Code in parts of words is not meant: rustfmt puts blanks around binary operators, and none around those of types.
EXCHANGES = [
    (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
    (" && ", " || "), (" || ", " && "), (" + 1", ""), (" - 1", ""), (" + ", " - "), (" - ", " + "), (" * ", " / "), (" / ", " * "),
    (" % ", " / "), (" << ", " >> "), (" >> ", " << "), (" & ", " | "), (" | ", " & "), (" += ", " -= "), (" -= ", " += "),
    (".min(", ".max("), (".max(", ".min("), ("saturating_sub(", "saturating_add("), ("saturating_add(", "saturating_sub("),
    (".is_some()", ".is_none()"), (".is_none()", ".is_some()"), (".is_ok()", ".is_err()"), (".is_err()", ".is_ok()"),
    (".any(", ".all("), (".all(", ".any("), ("is_some_and(", "is_none_or("), ("is_none_or(", "is_some_and("),
    ("true", "false"), ("false", "true"), ("..=", ".."),
]  # fmt: skip
# What does not ship, or is no code to change: assertions of debug builds, attributes, patterns.
NO_SITES = re.compile(r"\bdebug_assert\w*!|#!?\[|\bmacro_rules!\s*\w+|\bconst\s+\w+\s*:[^;]*?=|\bstatic\s+\w+\s*:[^;]*?=|\bmatches!")


SWITCH = """
/// The number of the mutant that is active, or 0. Records once that a function was called.
pub(crate) fn mutant(function: usize) -> u32 {
    static NUMBER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    static CALLED: [std::sync::atomic::AtomicBool; FUNCTIONS] = [const { std::sync::atomic::AtomicBool::new(false) }; FUNCTIONS];
    let number = *NUMBER.get_or_init(|| match std::env::var("FRAZIL_MUTANT") {
        Ok(number) => number.parse().unwrap_or(0),
        Err(_) => u32::MAX,
    });
    if number == 0 && !CALLED[function].swap(true, std::sync::atomic::Ordering::Relaxed) {
        if let Some(path) = std::env::var_os("FRAZIL_MUTANTS_CALLED") {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, format!("{function}\\n").as_bytes()));
        }
    }
    number
}
"""


def equivalent():
    """Returns the mutants that no test can find, with the reasons."""
    return tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())["mutant"]


class Mutant(NamedTuple):
    """A change of a piece of code within the body of a function."""

    path: str
    body: tuple[int, int]
    begin: int
    end: int
    new: str
    change: str

    def changed(self, text):
        """Returns the body with the change."""
        return text[self.body[0] : self.begin] + self.new + text[self.end : self.body[1]]


def close(code, at):
    """Returns the end of the bracket that opens at `at`."""
    depth = 0
    for each in re.finditer(r"[()\[\]{}]", code[at:]):
        depth += 1 if each[0] in "([{" else -1
        if depth == 0:
            return at + each.end()
    return len(code)


def left_out(code):
    """Returns the ranges of code that is for tests, or that no mutant may change."""
    for found in re.finditer(r"#\[cfg\(([^\n]*)\)\]\s*", code):
        condition = re.sub(r"not\((?:test|loom|doctest)\)", "", found[1])
        if re.search(r"\b(test|loom|doctest)\b", condition):
            item = re.search(r"[;{]", code[found.end() :])
            at = found.end() + item.start()
            yield (found.start(), close(code, at) if code[at] == "{" else at + 1)
    for found in NO_SITES.finditer(code):
        bracket = re.search(r"[(\[{;]", code[found.end() - 1 :])
        at = found.end() - 1 + bracket.start()
        yield (found.start(), close(code, at) if code[at] != ";" else at)


def test_modules(copy, root):
    """Returns the files and folders of modules that are for tests only."""
    for path in root.rglob("*.rs"):
        folder = path.parent if path.name in ("mod.rs", "lib.rs") else path.with_suffix("")
        for found in re.finditer(r"#\[cfg\(([^\n]*)\)\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\(\w+\))? )?mod (\w+);", path.read_text()):
            if re.search(r"\b(test|loom|doctest)\b", re.sub(r"not\((?:test|loom|doctest)\)", "", found[1])):
                yield folder / f"{found[2]}.rs"
                yield folder / found[2]


def sites(code, begin, end):
    """Returns the possible changes in a function's body as (begin, end, replacement)."""
    for old, new in EXCHANGES:
        for found in re.finditer(
            (r"\b" if old[0].isalpha() else "") + re.escape(old) + (r"\b" if old[-1].isalnum() else ""), code[begin:end]
        ):
            yield begin + found.start(), begin + found.end(), new
    # Conditions of `if`, `while` and match guards, forced.
    for found in re.finditer(r"\b(if|while) (?!let\b)", code[begin:end]):
        at = begin + found.end()
        depth, to = 0, at
        for each in re.finditer(r"[()\[\]{}]|=>", code[at:end]):
            if depth == 0 and each[0] in ("{", "=>"):
                to = at + each.start()
                break
            depth += {"=": 0}.get(each[0][0], 1 if each[0] in "([{" else -1)
            if depth < 0:
                break
        condition = code[at:to]
        if condition.strip() and " let " not in f" {condition}":
            for new in ("true ", "false "):
                if found[1] == "if" or new == "false ":
                    yield at, to, new
    # Statements that call something, removed.
    for found in re.finditer(r"(?<=[;{}])\s*(?=[a-z_][\w.:]*\()(?!(?:return|let|if|while|for|match|loop|drop)\b)", code[begin:end]):
        at, depth = begin + found.end(), 0
        for each in re.finditer(r"[()\[\]{}]|;", code[at:end]):
            if each[0] == ";" and depth == 0:
                if not re.search(r"[^=<>!]=[^=>]", re.sub(r"\(.*\)", "", code[at : at + each.start()], flags=re.DOTALL)):
                    yield at, at + each.end(), ""
                break
            depth += 0 if each[0] == ";" else 1 if each[0] in "([{" else -1
            if depth < 0:
                break
    # A value becomes `None`, a negation is removed.
    for found in re.finditer(r"\bSome\(", code[begin:end]):
        to = close(code, begin + found.end() - 1)
        if not re.match(r"\s*(?:=>|=[^=]|\||if\b)", code[to:]):
            yield begin + found.start(), to, "None"
    for found in re.finditer(r"(?<=[\s(])!(?=[a-z(])", code[begin:end]):
        yield begin + found.start(), begin + found.end(), ""


def all_mutants(copy, areas):
    """Returns the texts of the files of these areas, and all possible mutants in them."""
    texts, mutants = {}, []
    for area in areas:
        folder = copy / area
        files = sorted(folder.rglob("*.rs")) + ([folder.with_suffix(".rs")] if folder.with_suffix(".rs").exists() else [])
        root = copy / area.split("/src")[0] / "src"
        tests = set(test_modules(copy, root))
        for file in files:
            if not file.exists() or tests & {file, *file.parents}:
                continue
            path = str(file.relative_to(copy))
            text = texts[path] = file.read_text()
            mutants += of_file(path, text)
    return texts, mutants


def of_file(path, text):
    """Returns the possible mutants of a file."""
    code = switched.NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    skipped, bodies, seen, found = list(left_out(code)), switched.functions(text), set(), []
    names = {}
    for body in bodies:
        if any(begin < body[0] and body[1] < end for begin, end in bodies):
            continue
        header = switched.header(code, body[0])
        if re.search(r"\bconst (?:unsafe )?fn\b", header):
            continue
        name = re.search(r"\bfn\s+(\w+)", header)[1]
        for begin, end, new in sites(code, *body):
            if any(first <= begin < last for first, last in skipped) or (begin, end, new) in seen:
                continue
            seen.add((begin, end, new))
            line = text.rfind("\n", 0, begin) + 1, (text.find("\n", end) + len(text)) % len(text)
            before = " ".join(text[line[0] : line[1]].split())
            after = " ".join((text[line[0] : begin] + new + text[end : line[1]]).split())
            change = f"{name}: {before} -> {after}"
            names[change] = names.get(change, 0) + 1
            change += f" #{names[change]}" if names[change] > 1 else ""
            found.append(Mutant(path, body, begin, end, new, change))
    return found


def write(copy, texts, chosen):
    """Writes the sources with these mutants, and returns the lines of each as (path, first, last, number)."""
    lines, numbers = [], {}
    for mutant in chosen:
        numbers.setdefault((mutant.path, mutant.body), []).append(mutant)
    functions = list(numbers)
    for path in {mutant.path for mutant in chosen} | {each for each in texts if (copy / each).read_text() != texts[each]}:
        text, shift, out, at = texts[path], 1, "", 0
        for body in sorted(body for of, body in functions if of == path):
            out += text[at : body[0]] + f"{{ match crate::mutant({functions.index((path, body))}) {{\n"
            for mutant in numbers[path, body]:
                first = out.count("\n") + shift
                number = chosen.index(mutant) + 1
                out += f"{number} => {{ let mutant_{number} = (); {mutant.changed(text)} }}\n"
                lines.append((path, first, out.count("\n") + shift - 1, number))
            first = out.count("\n") + shift
            out += f"_ => {text[slice(*body)]} }} }}"
            at = body[1]
        (copy / path).write_text(out + text[at:])
    for crate in ("core", "core/store"):
        root = copy / crate / "src/lib.rs"
        path = f"{crate}/src/lib.rs"
        body = root.read_text() if path in {mutant.path for mutant in chosen} else texts.get(path) or (ROOT / path).read_text()
        root.write_text(body + SWITCH.replace("FUNCTIONS", str(max(1, len(functions)))))
    return lines, functions
