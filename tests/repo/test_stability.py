"""The promise of docs/stability.md for the C ABI: within a minor version nothing of the header changes or goes, and structs grow at their ends.

After the minor version has changed, `python3 tests/repo/test_stability.py` writes the header's declarations to `abi.json`. Within one, it
adds what is new.
"""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KNOWN = pathlib.Path(__file__).with_name("abi.json")


def declarations(header):
    """Returns the declarations of a header: functions and types by name, constants with their values, structs with their fields in order."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header, flags=re.DOTALL).replace("\\\n", " ")
    constants = dict(re.findall(r"^#define (FRAZIL_\w+)[ \t]+([^\n(]\S*)[ \t]*$", text, re.MULTILINE))
    text = " ".join(re.sub(r"^#.*$", "", text, flags=re.MULTILINE).split())
    for name, value in re.findall(r"(FRAZIL_\w+) = (-?\w+)", text):
        constants[name] = value
    structs = {}
    for body, name in re.findall(r"typedef struct \{([^{}]*)\} (\w+);", text):
        structs[name] = [" ".join(field.split()) for field in body.split(";") if field.strip()]
    functions = {
        name: f"{result.strip()} ({arguments})" for result, name, arguments in re.findall(r"([\w *]+?)(frazil_\w+) ?\(([^;{}]*)\);", text)
    }
    return {"constants": constants, "structs": structs, "functions": functions}


def changed(before, now):
    """Returns what a program that was compiled with the header before cannot rely on any more."""
    gone = [f"{kind} {name}" for kind in ("constants", "functions") for name, value in before[kind].items() if now[kind].get(name) != value]
    return gone + [f"struct {name}" for name, fields in before["structs"].items() if now["structs"].get(name, [])[: len(fields)] != fields]


def today():
    header = (ROOT / "include/frazil.h").read_text()
    version = ".".join(re.search(rf"FRAZIL_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR"))
    return {"version": version, **declarations(header)}


def versionless(header):
    """The patch version changes within a minor version."""
    kept = {name: value for name, value in header["constants"].items() if not name.startswith("FRAZIL_VERSION_")}
    return header | {"constants": kept}


def test_header_keeps_what_programs_were_compiled_with():
    before, now = json.loads(KNOWN.read_text()), today()
    if before["version"] == now["version"]:
        assert changed(versionless(before), versionless(now)) == []
    assert len(now["functions"]) > 80 and len(now["structs"]) > 5 and len(now["constants"]) > 40


def test_a_change_of_the_header_is_noticed():
    header = "enum { FRAZIL_A = 1, };\ntypedef struct { int32_t a; int64_t b; } frazil_s;\nint32_t frazil_f(const char *text,\n  int64_t *out);\n"
    before = declarations(header)
    added = header.replace("b;", "b; int64_t c;") + "int32_t frazil_g(void);"
    assert changed(before, declarations(added)) == []
    for old, new in [
        ("FRAZIL_A = 1", "FRAZIL_A = 2"),
        ("int32_t a; int64_t b", "int64_t b; int32_t a"),
        ("int64_t *out", "int32_t *out"),
        ("_f(", "_h("),
    ]:
        assert changed(before, declarations(header.replace(old, new))) != [], new


if __name__ == "__main__":
    KNOWN.write_text(json.dumps(today(), indent=1, sort_keys=True) + "\n")
