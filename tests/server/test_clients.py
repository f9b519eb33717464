"""The programs of docs/server-clients.md, unchanged except for the ports. They lose no digit."""

import re
import subprocess
import sys

import frazil
import pytest
from replica import ROOT, TIMEOUT_S, Replica

GUIDE = (ROOT / "docs/server-clients.md").read_text()
STANDARD = frazil.Layout("standard")
# A number that rounds to the same double as its neighbours.
FIRST = 2**53 + 1
# The command that runs a program of each language.
RUNS = {
    "sh": ["sh", "-e"],
    "php": ["php"],
    "go": ["go", "run"],
    "java": ["java", "-XX:TieredStopAtLevel=1"],
    "py": [sys.executable],
    "mjs": ["node"],
}
PROGRAMS = [
    pytest.param(language, code, id=f"{language}-{number}")
    for number, (language, code) in enumerate(re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Replica(tmp_path_factory.mktemp("clients"), "orders=standard node=1", f"invoice=segment store=memory start={FIRST}") as replica:
        yield replica
        assert replica.end() == 0


@pytest.mark.parametrize("language, code", PROGRAMS)
def test_a_program_of_the_guide(language, code, server, tmp_path):
    for port, protocol in ((8080, "http"), (6390, "resp")):
        code = re.sub(rf"\b{port}\b", str(server.ports[protocol]), code)
    program = tmp_path / f"Ids.{language}"
    program.write_text(code)
    if language == "mjs":
        (tmp_path / "node_modules").symlink_to(ROOT / "tests/server/node_modules")
    # An order and an invoice before those of the program; the same comes after them.
    before = server.ids("orders", 1) + server.ids("invoice", 1)
    result = subprocess.run([*RUNS[language], program], capture_output=True, text=True, timeout=4 * TIMEOUT_S, check=False, cwd=tmp_path)
    assert result.returncode == 0 and not result.stderr, result.stderr
    after = server.ids("orders", 1) + server.ids("invoice", 1)
    printed = [int(line) for line in result.stdout.split()]
    # The program has printed all issued numbers, to the last digit.
    orders, invoices = ([number for number in printed if low < number < high] for low, high in zip(before, after, strict=True))
    assert invoices == list(range(before[1] + 1, after[1])) and len(invoices) == ("invoice" in code)
    assert len(orders) == 3 and orders == sorted(set(orders)) and sorted(printed) == sorted(orders + invoices)
    assert all(STANDARD.decode(number).node == 1 for number in orders)
