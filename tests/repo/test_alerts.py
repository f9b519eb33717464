"""The alerts of the guide and of frazil-server, by Prometheus' own tool: each fires when it should, and only then."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SERVER = ROOT / "server/dist/prometheus.yaml"
GUIDE = re.search(r"^```yaml\n(groups:.*?)^```$", (ROOT / "docs/observability.md").read_text(), re.MULTILINE | re.DOTALL)[1]

# Each alert with a metric, its labels, and two series of values, one a minute: it fires after ten minutes of the first, but not of the
# second. "0+6x10" grows by 6 a minute.
DAY = 86_400
CASES = {
    "FrazilLeaseEndsSoon": ("frazil_lease_left_seconds", {"spec": "standard store=redis://db"}, "55x8 15 15", "55x10"),
    "FrazilLeaseFailing": ("frazil_lease_failing_seconds", {}, "31x10", "0x10"),
    "FrazilRefused": ("frazil_refused_total", {}, "0+1x10", "7x10"),
    "FrazilExhausted": ("frazil_exhausted_total", {}, "0+120x10", "0+30x10"),
    "FrazilClockWentBack": ("frazil_clock_rollbacks_total", {}, "0x8 1 1", "1x10"),
    "FrazilLayoutEnds": ("frazil_layout_left_seconds", {}, f"{364 * DAY}x10", f"{366 * DAY}x10"),
    "FrazilServerPanicked": ("frazil_server_panics_total", {}, "0x8 1 1", "1x10"),
    "FrazilServerSlow": ("frazil_server_request_seconds_bucket", {"protocol": "http"}, None, None),
    "FrazilServerRefuses": ("frazil_server_requests_total", {"protocol": "http"}, None, None),
    "FrazilServerUnauthorized": ("frazil_server_requests_total", {"protocol": "resp", "code": "WRONGPASS"}, "0+6x10", "0+1x10"),
    "FrazilServerFull": ("frazil_server_connections_turned_away_total", {"protocol": "http"}, "0x8 1 1", "1x10"),
    "FrazilServerKeptOldFiles": ("frazil_server_last_reload_successful", {}, "0x10", "1x10"),
    "FrazilServerCertificateEnds": ("frazil_server_certificate_expires_timestamp_seconds", {}, f"{13 * DAY}x10", f"{15 * DAY}x10"),
    "FrazilServerLogIncomplete": ("frazil_server_log_lines_lost_total", {}, "0+5x10", "5x10"),
}
COUNT = 'count(ALERTS{{alertname="{}",alertstate="firing"}}) or vector(0)'
# The alerts that compare several series.
SERIES = {
    ("FrazilServerSlow", True): [({"le": "0.16"}, "0+1x10"), ({"le": "0.32"}, "0+100x10"), ({"le": "+Inf"}, "0+100x10")],
    ("FrazilServerSlow", False): [({"le": "0.16"}, "0+100x10"), ({"le": "0.32"}, "0+100x10"), ({"le": "+Inf"}, "0+100x10")],
    ("FrazilServerRefuses", True): [({"code": "OK"}, "0+90x10"), ({"code": "OUT_OF_RANGE"}, "0+10x10")],
    ("FrazilServerRefuses", False): [({"code": "OK"}, "0+99x10"), ({"code": "OUT_OF_RANGE"}, "0+1x10")],
}


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alerts")
    (folder / "guide.yaml").write_text(GUIDE)
    files = [folder / "guide.yaml", SERVER]
    result = subprocess.run(["promtool", "check", "rules", *files], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return files


# Leases with these windows, which renew after a sixth: the alert is quiet, and fires with a quarter left.
@pytest.mark.parametrize("window", [4, 15, 60, 3600])
def test_the_end_of_a_lease_is_a_part_of_its_window(window, rules, tmp_path):
    for left, fires in ((window, 0), (window / 4, 1)):
        values = f"{window}+0x5 {window * 5 / 6}+0x2 {left}+0x2"
        series = {"series": 'frazil_lease_left_seconds{spec="standard store=local"}', "values": values}
        check = {"expr": COUNT.format("FrazilLeaseEndsSoon"), "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": fires}]}
        case = {
            "rule_files": [str(file) for file in rules],
            "tests": [{"interval": "1m", "input_series": [series], "promql_expr_test": [check]}],
        }
        (tmp_path / "case.yaml").write_text(json.dumps(case))
        result = subprocess.run(["promtool", "test", "rules", tmp_path / "case.yaml"], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def names(text):
    return set(re.findall(r"- alert: (\w+)", text))


def test_each_alert_has_its_case_and_its_remedy():
    assert names(GUIDE) | names(SERVER.read_text()) == set(CASES)
    listed = re.findall(r"^\| `(FrazilServer\w+)`", (ROOT / "docs/server.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(names(SERVER.read_text()))


@pytest.mark.parametrize("fires", [True, False], ids=["fires", "is quiet"])
@pytest.mark.parametrize("name", CASES)
def test_an_alert(name, fires, rules, tmp_path):
    metric, labels, yes, no = CASES[name]
    series = SERIES.get((name, fires), [({}, yes if fires else no)])

    def written(more):
        inner = ",".join(f"{key}={json.dumps(value)}" for key, value in {"instance": "a", **labels, **more}.items())
        return f"{metric}{{{inner}}}"

    # JSON is valid YAML. An alert has the labels that its expression keeps.
    case = {
        "rule_files": [str(file) for file in rules],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": written(more), "values": values} for more, values in series],
                "promql_expr_test": [
                    {
                        "expr": COUNT.format(name),
                        "eval_time": "10m",
                        "exp_samples": [{"labels": "{}", "value": int(fires)}],
                    }
                ],
            }
        ],
    }
    (tmp_path / "case.yaml").write_text(json.dumps(case))
    result = subprocess.run(["promtool", "test", "rules", tmp_path / "case.yaml"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
