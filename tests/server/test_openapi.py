"""The description of the paths against the server: Schemathesis sends hundreds of requests that it allows or forbids."""

import json
import subprocess
import sys

import pytest
from replica import Replica

TOKEN = "t" * 32
CONFIG = """
[parameters]
"path.name" = "{name}"
# A schema cannot express which times and IDs a layout has.
[[operations]]
include-path = "/v1/{{name}}/range"
checks.positive_data_acceptance.enabled = false
[[operations]]
include-path = "/v1/{{name}}/decode/{{id}}"
checks.positive_data_acceptance.enabled = false
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("openapi")
    tokens = folder / "tokens.toml"
    tokens.write_text(f'[all]\nsecret = "{TOKEN}"\nmint = ["*"]\nlease = ["*"]\n')
    with Replica(folder, "orders=standard node=1", "invoice=segment store=memory", f"--tokens={tokens}", "--max-count=500") as server:
        yield server


def findings(server, folder, name, description):
    (folder / "schemathesis.toml").write_text(CONFIG.format(name=name))
    (folder / "openapi.json").write_text(json.dumps(description))
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run", "openapi.json"]
    command += [f"--url=http://127.0.0.1:{server.ports['http']}", f"--header=Authorization: Bearer {TOKEN}", "--phases=coverage,fuzzing"]
    result = subprocess.run([*command, "--max-examples=30"], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert "Tested: 4" in result.stdout, result
    return result


@pytest.mark.parametrize("name", ["orders", "invoice"])
def test_the_server_does_what_it_says(server, tmp_path, name):
    status, _, description = server.ask("GET", "/openapi.json", {"Authorization": f"Bearer {TOKEN}"})
    description = json.loads(description)
    assert status == 200 and description["components"]["parameters"]["n"]["schema"]["maximum"] == 500
    result = findings(server, tmp_path, name, description)
    assert result.returncode == 0, result.stdout


def test_a_false_description_is_found(server, tmp_path):
    description = json.loads(server.ask("GET", "/openapi.json", {"Authorization": f"Bearer {TOKEN}"})[2])
    description["components"]["parameters"]["n"]["schema"]["maximum"] = 1000
    result = findings(server, tmp_path, "orders", description)
    assert result.returncode == 1 and "n=" in result.stdout and "1 to 500" in result.stdout, result.stdout
