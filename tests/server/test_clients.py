"""docs/server-clients.md: its programs run as they stand there, on ports of our own, and lose no digit."""

import re
import subprocess
import sys

import frazil
import pytest
from replica import ROOT, TIMEOUT_S, Replica

GUIDE = (ROOT / "docs/server-clients.md").read_text()
STANDARD = frazil.Layout("standard")
# A number that JavaScript cannot tell from its neighbours.
FIRST = 2**53 + 1
# How a program of each language is run.
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
    # An order and an invoice around those of the program.
    before = server.ids("orders", 1) + server.ids("invoice", 1)
    told = subprocess.run([*RUNS[language], program], capture_output=True, text=True, timeout=4 * TIMEOUT_S, check=False, cwd=tmp_path)
    assert told.returncode == 0 and not told.stderr, told.stderr
    after = server.ids("orders", 1) + server.ids("invoice", 1)
    printed = [int(line) for line in told.stdout.split()]
    # All that was given out was printed, to the last digit.
    orders, invoices = ([number for number in printed if low < number < high] for low, high in zip(before, after, strict=True))
    assert invoices == list(range(before[1] + 1, after[1])) and len(invoices) == ("invoice" in code)
    assert len(orders) == 3 and orders == sorted(set(orders)) and sorted(printed) == sorted(orders + invoices)
    assert all(STANDARD.decode(number).node == 1 for number in orders)
