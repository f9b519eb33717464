#!/usr/bin/env python3
"""Prints tests/vectors/*.json as arrays of the structs in vectors_types.h, for C99 and C++17."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "vectors"


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def text(value):
    plain = lambda byte: chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
    return '"' + "".join(plain(byte) for byte in value.encode()) + '"'


def refusal(row, key):
    says = ", ".join([text(word) for word in row["says"]] + ["NULL"])
    return text(row[key]), f"FRAZIL_{row['error']}", "{" + says + "}"


def integer(value):
    return f"INT64_C({value})"


def fields(pairs):
    return "{" + ", ".join(["{" + f"{text(name)}, {value}" + "}" for name, value in pairs] or ["{NULL, 0}"]) + "}"


def array(kind, name, rows):
    print(f"static const struct {kind} {name}[] = {{")
    for row in rows:
        print("    {" + ", ".join(map(str, row)) + "},")
    print("};\n")


def known_ids():
    for vector in load("known_ids")["vectors"]:
        named = dict(vector["fields"])
        sequence = named.pop("sequence")
        has_time = "unix_ms" in vector
        yield (
            text(vector["layout"]),
            integer(vector["id"]),
            str(has_time).lower(),
            integer(vector.get("unix_ms", 0)),
            sequence,
            len(named),
            fields(named.items()),
        )


def layouts():
    for layout in load("layouts")["valid"]:
        end = layout["expires_at_ms"]
        yield (
            text(layout["text"]),
            text(layout["canonical"]),
            layout["time_bits"],
            layout["tick_ms"],
            integer(layout["epoch_ms"]),
            len(layout["fields"]),
            fields(layout["fields"]),
            layout["sequence_bits"],
            f"UINT64_C({layout['nodes']})",
            layout["ids_per_second"],
            "INT64_MAX" if end is None else integer(end),
        )


def mistakes():
    """Yields the mistakes that a C caller can make with a line or a text; C's types rule out the others."""
    for row in load("mistakes")["mistakes"]:
        value = row["value"] if isinstance(row["value"], str) else json.dumps(row["value"])
        if "option" in row and "typed" not in row:
            yield refusal(row | {"line": f"{row['spec']} {row['option']}={value}"}, "line")


def step(kind, *values):
    number, first, last, code = 0, 0, 0, 0
    if kind == "next":
        first = last = values[0]
    elif kind == "batch":
        number, first, last = values
    elif kind == "error":
        code = f"FRAZIL_{values[0]}"
    else:
        number = values[0]
    return f"STEP_{kind.upper()}", integer(number) if not code else code, "NULL", "NULL", integer(first), integer(last)


def steps():
    for replay in load("replays")["replays"]:
        yield "STEP_OPEN", 0, text(replay["spec"]), text(replay["name"]), 0, 0
        yield from (step(*values) for values in replay["steps"])


def takeovers(rows):
    begin = 0
    for row in rows:
        named = dict(row["fields"])
        sequence = named.pop("sequence")
        count = len(row["steps"])
        yield (
            text(row["system"]),
            text(row["spec"]),
            text(row["layout"]),
            integer(row["last"]),
            integer(row["unix_ms"]),
            sequence,
            len(named),
            fields(named.items()),
            begin,
            count,
        )
        begin += count


def object_ids():
    for row in load("interop")["object_ids"]:
        yield text(row["text"]), integer(row["unix_ms"]), f"UINT64_C({row['random']})", row["counter"], row["machine"], row["process"]


def uuids():
    for row in load("interop")["uuids"]:
        for given in row["texts"]:
            at = row["unix_ms"]
            yield text(given), text(row["canonical"]), row["version"], str(at is not None).lower(), integer(at or 0)


def main():
    texts, layout_cases, specs = load("texts"), load("layouts"), load("specs")
    errors = load("errors")["errors"]
    forms = ("decimal", "base62", "base32", "hex", "check")
    print("/* Generated from tests/vectors by tests/c/vectors.py. */\n")
    array("known_id", "KNOWN_IDS", known_ids())
    array(
        "valid_text",
        "VALID_TEXTS",
        ((integer(row["id"]), "{" + ", ".join(text(row[form]) for form in forms) + "}") for row in texts["valid"]),
    )
    array("invalid_text", "INVALID_TEXTS", ((f"FRAZIL_{row['format'].upper()}", text(row["text"])) for row in texts["invalid"]))
    for kind, last in (("spelled", "id"), ("refused", "says")):
        rows = ((f"FRAZIL_{row['format'].upper()}", text(row["prefix"]), text(row["text"]), text(row[last])) for row in texts[kind])
        array("prefixed_text", f"{kind.upper()}_TEXTS", rows)
    array("valid_layout", "VALID_LAYOUTS", layouts())
    array("refusal", "INVALID_LAYOUTS", (refusal(row, "text") for row in layout_cases["invalid"]))
    array("valid_spec", "VALID_SPECS", ((text(row["spec"]), text(row["canonical"])) for row in specs["canonical"]))
    array("refusal", "INVALID_SPECS", (refusal(row, "spec") for row in specs["invalid"]))
    array("refusal", "MISTAKES", mistakes())
    array("step", "STEPS", steps())
    rows = load("takeover")["takeovers"]
    array("takeover", "TAKEOVERS", takeovers(rows))
    array("step", "TAKEOVER_STEPS", (step(*values) for row in rows for values in row["steps"]))
    interop = load("interop")
    array("object_id_parts", "OBJECT_IDS", object_ids())
    array(
        "object_id_bound",
        "OBJECT_ID_BOUNDS",
        ((integer(r["unix_ms"]), text(r["min"]), text(r["max"])) for r in interop["object_id_bounds"]),
    )
    array(
        "instant_refusal",
        "OBJECT_ID_OUT_OF_BOUNDS",
        ((integer(r["unix_ms"]), f"FRAZIL_{r['error']}") for r in interop["object_id_out_of_bounds"]),
    )
    array("known_uuid", "UUIDS", uuids())
    for name in ("object_ids_invalid", "uuids_invalid"):
        print(f"static const char *const {name.upper()}[] = {{")
        print("".join(f"    {text(bad)},\n" for bad in interop[name]) + "};\n")
    array("error_row", "ERRORS", ((row["code"], f"FRAZIL_{row['name']}", text(row["name"]), text(row["meaning"])) for row in errors))
    print("#ifdef __cplusplus\nstatic const frazil::errc ERRCS[] = {")
    for row in errors:
        print(f"    frazil::errc::{row['name'].lower()},")
    print("};\n#endif")


if __name__ == "__main__":
    main()
