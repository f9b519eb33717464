"""Prints how programs change an ID, and frazil's findings on their output. docs/merge-audit.md quotes this table.

    PATH=target/debug:$PATH python tests/tools/tools.py [--python VENV/bin/python]

Each installed program runs; missing ones are named at the end. The Python packages are those of --python. The script exits with 1 if a
program's output differs from the table in this file. The pages that quote it must then be checked. The tests do not run the script,
because the programs are large, and their versions depend on the machine.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ID = "250318245867245581"
# The nearest double: with the fewest digits, with 17 digits, and in full.
SHORTEST, DIGITS_17, DOUBLE = "250318245867245570", "2.5031824586724557e+17", "250318245867245568"
CSV = f"id,name\n{ID},a\n"
JSON = f'{{"id":{ID}}}\n'

# Each program, the command that prints its version, the command that reads id.csv or id.json, and its output.
PROGRAMS = [
    ("gojq", "gojq --version", "gojq .id id.json", ID),
    ("gojq, + 0", "gojq --version", "gojq '.id + 0' id.json", ID),
    ("jq", "jq --version", "jq .id id.json", SHORTEST),
    ("jq, + 0", "jq --version", "jq '.id + 0' id.json", SHORTEST),
    ("jo", "jo -v", f"jo id={ID} | tr -dc '0-9.e+'", "2.503182458672456e+17"),
    ("Miller, cat", "mlr --version", "mlr --icsv --onidx cat then cut -f id id.csv", ID),
    ("Miller, sort -nr", "mlr --version", "mlr --icsv --onidx sort -nr id then cut -f id id.csv", ID),
    ("Miller, $id * 1", "mlr --version", "mlr --icsv --onidx put '$id = $id * 1' then cut -f id id.csv", ID),
    ("Miller, $id * 1.0", "mlr --version", "mlr --icsv --onidx put '$id = $id * 1.0' then cut -f id id.csv", SHORTEST),
    ("PHP, json_decode", "php -r 'echo PHP_VERSION;'", "php -r 'echo json_encode(json_decode(file_get_contents(\"id.json\"))->id);'", ID),
    ("PHP, round", "php -r 'echo PHP_VERSION;'", f"php -r 'echo round({ID});'", "2.5031824586725E+17"),
    ("PHP, number_format", "php -r 'echo PHP_VERSION;'", f'php -r \'echo number_format({ID}, 0, "", "");\'', DOUBLE),
    ("Perl", "perl -e 'print $^V'", f"perl -e 'print {ID} + 0'", ID),
    ("Perl, int($id / 1)", "perl -e 'print $^V'", f"perl -e 'print int({ID} / 1)'", ID),
    ("Ruby, JSON", "ruby -v", 'ruby -rjson -e \'print JSON.parse(File.read("id.json"))["id"]\'', ID),
    ("Ruby, to_f.to_i", "ruby -v", f"ruby -e 'print {ID}.to_f.to_i'", DOUBLE),
    ("mawk, + 0", "mawk -W version 2>&1", f"echo {ID} | mawk '{{ print $1 + 0 }}'", "2.50318e+17"),
    ("mawk, %d", "mawk -W version 2>&1", f"echo {ID} | mawk '{{ printf \"%d\", $1 }}'", "2147483647"),
    ("gawk, + 0", "gawk --version", f"echo {ID} | gawk '{{ print $1 + 0 }}'", DOUBLE),
    ("busybox awk, + 0", "busybox", f"echo {ID} | busybox awk '{{ print $1 + 0 }}'", DOUBLE),
    ("busybox awk, %d", "busybox", f"echo {ID} | busybox awk '{{ printf \"%d\", $1 }}'", "-2147483648"),
    ("JavaScript, JSON.parse", "node --version", 'node -p \'JSON.parse(require("fs").readFileSync("id.json")).id\'', SHORTEST),
    (
        "SQLite, REAL",
        "sqlite3 --version",
        f"sqlite3 :memory: 'create table t (id real); insert into t values ({ID}); select id from t'",
        "2.50318245867246e+17",
    ),
    (
        "SQLite, INTEGER",
        "sqlite3 --version",
        f"sqlite3 :memory: 'create table t (id integer); insert into t values ({ID}); select id from t'",
        ID,
    ),
    ("SQLite, round", "sqlite3 --version", f"sqlite3 :memory: 'select round({ID})'", "2.50318245867246e+17"),
    ("R, read.csv", "R --version", "Rscript -e 'write.csv(read.csv(\"id.csv\")$id, row.names = FALSE)' | tail -1", DOUBLE),
    ("Octave, csvread", "octave-cli --version", 'octave-cli --eval \'printf("%d", csvread("id.csv")(2, 1))\'', DOUBLE),
]
# Each Python package, the statement that prints its form of the ID, and the output.
PACKAGES = [
    ("csvkit", "csvjson id.csv | grep -o '[0-9][0-9.e+]*' | head -1", DIGITS_17),
    ("csvkit", "csvsql --query 'select id from id' id.csv | tail -1", DIGITS_17),
    ("duckdb", "import duckdb; print(duckdb.sql(\"select id from 'id.csv'\").fetchall()[0][0])", ID),
    ("duckdb", "import duckdb; print(duckdb.sql(\"select id from read_json('id.json')\").fetchall()[0][0])", ID),
    ("duckdb", f"import duckdb; print(duckdb.sql('select {ID} / 1').fetchall()[0][0])", DIGITS_17),
    ("duckdb", f"import duckdb; print(duckdb.sql('select floor({ID})').fetchall()[0][0])", DIGITS_17),
    ("polars", "import polars; print(polars.read_csv('id.csv')['id'][0])", ID),
    ("polars", "import polars; print(polars.read_ndjson('id.json')['id'][0])", ID),
    ("pandas", "import pandas; print(pandas.read_csv('id.csv')['id'][0])", ID),
    ("pandas", "import pandas; print(pandas.read_csv('gap.csv').to_csv(columns=['id'], index=False).split()[1])", DIGITS_17),
    (
        "pandas",
        f'import pandas, io; print(pandas.read_json(io.StringIO(\'[{{"id":"{ID}"}},{{"id":null}}]\')).to_csv(index=False).split()[1])',
        DIGITS_17,
    ),
    (
        "pandas",
        f"import pandas as p; d = p.DataFrame; print(d({{'id': [{ID}]}}, index=[0]).combine_first(d({{'id': [1]}}, index=[1])).id[0])",
        DOUBLE,
    ),
    (
        "pandas",
        f"import pandas as p; print(p.Series(['a', 'b']).map({{'a': {ID}}}).to_csv(index=False, header=False).split()[0])",
        DIGITS_17,
    ),
    ("openpyxl", f"import openpyxl; b = openpyxl.Workbook(); b.active['A1'] = {ID}; b.save('x.xlsx'); CELL", "2.503182458672456e+17"),
    (
        "xlsxwriter",
        f"import xlsxwriter; b = xlsxwriter.Workbook('x.xlsx'); b.add_worksheet().write(0, 0, {ID}); b.close(); CELL",
        "2.503182458672456E+17",
    ),
]
CELL = "import re, zipfile; print(re.search('<v>(.*?)</v>', zipfile.ZipFile('x.xlsx').read('xl/worksheets/sheet1.xml').decode())[1])"


def output(command: list[str], folder: str) -> str:
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines else ""


def said(text: str) -> str:
    """Returns the verdict of `frazil inspect` on a text."""
    inspected = subprocess.run(["frazil", "inspect", "--json", text], check=False, capture_output=True, text=True)
    inspection = json.loads(inspected.stdout)
    if text.strip().strip('"') == ID:
        return "exact"
    for number in inspection["numbers"]:
        if rounded := number["rounded"]:
            return f"rounded {rounded['by']}: {rounded['count']} IDs become it"
    return inspection["others"][0]["about"] if inspection["others"] else "nothing"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    python = Path(parser.parse_args().python).absolute()
    rows, missing, changed = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("id.csv", CSV), ("id.json", JSON), ("gap.csv", f"{CSV},b\n")):
            (Path(folder) / name).write_text(text)
        for name, version, command, writes in PROGRAMS:
            if not shutil.which(version.split()[0]):
                missing.append(name)
                continue
            rows.append((name, output(["sh", "-c", version], folder), output(["bash", "-c", command], folder), writes))
        for name, code, writes in PACKAGES:
            version = output([python, "-c", f"import importlib.metadata as m; print(m.version('{name}'))"], folder)
            if "Error" in version or "Traceback" in version:
                missing.append(name)
                continue
            is_python = code.startswith("import")
            command = [python, "-c", code.replace("CELL", CELL)] if is_python else ["bash", "-c", f"PATH={python.parent}:$PATH; {code}"]
            rows.append((f"{name}: {code.split(';', 1)[-1].strip() if is_python else code}", version, output(command, folder), writes))
    print("| program | version | writes | frazil says |\n|---|---|---|---|")
    for name, version, wrote, writes in rows:
        # A table's cell cannot contain a plain bar.
        print(f"| {name.replace('|', chr(92) + '|')} | {version} | `{wrote}` | {said(wrote)} |")
        if wrote != writes:
            changed += 1
            print(f"{name} wrote {wrote}, not {writes}", file=sys.stderr)
    if missing:
        print("not installed:", ", ".join(sorted(set(missing))), file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
