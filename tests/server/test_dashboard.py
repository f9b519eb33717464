"""The dashboard for Grafana: a real Prometheus answers each of its queries about a real server."""

import itertools
import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from replica import ROOT, TIMEOUT_S, Replica
from servers import process

DASHBOARD = json.loads((ROOT / "server/dist/grafana.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
[MARKS] = DASHBOARD["annotations"]["list"]
QUESTIONS = {f"{panel['title']} {target['refId']}": target["expr"] for panel in PANELS for target in panel["targets"]}
QUESTIONS[MARKS["name"]] = MARKS["expr"]
# One name of each kind. The first has a lease, whose bound is shown.
NAMES = ("orders=standard store=file:{store}", "invoice=segment store=memory step=100", "ring=buffered standard node=2 size=4096")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dashboard")
    with Replica(folder, *(name.format(store=folder / "store") for name in NAMES)) as server:
        yield server


@pytest.fixture(scope="module")
def ask(server, tmp_path_factory):
    """Returns a function that queries Prometheus, which has read the server's metrics several times."""
    folder = tmp_path_factory.mktemp("prometheus")
    scrape = {"job_name": "frazil-server", "static_configs": [{"targets": [f"127.0.0.1:{server.ports['admin']}"]}]}
    # JSON is YAML.
    (folder / "prometheus.yml").write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}))
    reserved = process.reserve_port()
    address = f"127.0.0.1:{process.port_of(reserved)}"
    options = ("--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}", "--log.level=warn")
    running = process.spawn(["prometheus", *options], folder / "prometheus.log", cwd=folder)

    def ask(question):
        query = urllib.parse.urlencode({"query": question})
        try:
            with urllib.request.urlopen(f"http://{address}/api/v1/query?{query}", timeout=TIMEOUT_S) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None

    def is_ready():
        """Returns whether Prometheus answers queries. Its port opens earlier."""
        try:
            with urllib.request.urlopen(f"http://{address}/-/ready", timeout=TIMEOUT_S):
                return True
        except OSError:
            return False

    try:
        assert process.await_true(is_ready, TIMEOUT_S), (folder / "prometheus.log").read_text()

        def has_read():
            for name in ("orders", "invoice", "ring"):
                server.ids(name, 100)
            server.json("POST", "/v1/none/next")
            return int((ask("min(count_over_time(frazil_issued_total[1m]))") or [{"value": [0, 0]}])[0]["value"][1]) >= 5

        assert process.await_true(has_read, TIMEOUT_S), (folder / "prometheus.log").read_text()
        yield ask
    finally:
        running.kill()
        running.wait()
        reserved.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_an_answer(question, ask, server):
    asked = QUESTIONS[question].replace("$__rate_interval", "1m").replace("$instance", ".+")
    assert "$" not in asked
    assert ask(asked), asked


def test_the_replicas_to_choose_from(ask, server):
    [instance] = DASHBOARD["templating"]["list"][1:]
    assert instance["query"] == "label_values(frazil_server_build_info, instance)"
    assert [one["metric"]["instance"] for one in ask("frazil_server_build_info")] == [f"127.0.0.1:{server.ports['admin']}"]


def test_a_mark_lies_where_the_server_started(ask, server):
    """The value is the time of the mark, in milliseconds."""
    assert MARKS["useValueForTime"] == "on"
    [mark] = ask(MARKS["expr"].replace("$instance", ".+"))
    assert 0 <= time.time() * 1000 - float(mark["value"][1]) < 600_000


def test_single_figures_are_on_top_and_a_short_lease_is_red():
    figures = [panel for panel in PANELS if panel["type"] == "stat"]
    assert sum(panel["gridPos"]["w"] for panel in figures) == 24 and {panel["gridPos"]["y"] for panel in figures} == {0}
    for panel in (panel for panel in PANELS if "frazil_lease_left_seconds" in panel["targets"][0]["expr"]):
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        # The default `renew` of a store on a server is 10 s.
        assert [(step["color"], step["value"]) for step in steps[:2]] == [("red", None), ("orange", 10)]


def test_the_panels_have_their_places():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = set(itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])))
        assert not cells & taken, panel["title"]
        taken |= cells
    assert all(panel["description"].endswith(".") and panel["fieldConfig"]["defaults"]["unit"] for panel in PANELS)


def test_the_questions_are_well_formed(tmp_path):
    rules = [{"record": f"panel:{number}", "expr": asked} for number, asked in enumerate(QUESTIONS.values())]
    text = json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}).replace("$__rate_interval", "1m")
    (tmp_path / "rules.yml").write_text(text)
    subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yml"], check=True, capture_output=True)
