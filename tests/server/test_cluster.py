"""The files for Kubernetes and Compose: they are valid by their schemas, agree with each other, and have accepted settings."""

import os
import re
import subprocess
import sys

import kubernetes_validate
import pytest
import yaml
from replica import ROOT, run

DIST = ROOT / "server/dist"
KUBERNETES = sorted(DIST.glob("kubernetes/*.yaml"))
SECRETS = {"DATABASE_URL": "postgresql://me:secret@127.0.0.1/x", "SHOP_TOKEN": "t" * 32}


def manifest(name):
    return yaml.safe_load((DIST / "kubernetes" / name).read_text())


def pod():
    return manifest("deployment.yaml")["spec"]["template"]["spec"]


@pytest.mark.parametrize("path", [path for path in KUBERNETES if path.name != "kustomization.yaml"], ids=lambda path: path.name)
def test_manifests_are_valid(path):
    """Checks by the schemas of an old and a new Kubernetes. An unknown field is an error."""
    for version in ("1.28", "1.34"):
        kubernetes_validate.validate(yaml.safe_load(path.read_text()), version, strict=True)


def test_a_wrong_manifest_is_found():
    wrong = manifest("deployment.yaml")
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.34", strict=True)


def test_compose_is_valid(tmp_path):
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    assert subprocess.run([*check, DIST / "compose.yaml"], check=False, timeout=60).returncode == 0
    wrong = tmp_path / "compose.yaml"
    wrong.write_text((DIST / "compose.yaml").read_text().replace("read_only", "read_onli"))
    assert subprocess.run([*check, wrong], check=False, capture_output=True, timeout=60).returncode != 0


def test_the_files_are_those_of_kustomize():
    kustomization = manifest("kustomization.yaml")
    assert sorted(kustomization["resources"]) == [path.name for path in KUBERNETES if path.name != "kustomization.yaml"]
    [generated] = kustomization["configMapGenerator"]
    assert all((DIST / "kubernetes" / file).is_file() for file in generated["files"])
    assert pod()["volumes"][0]["configMap"]["name"] == generated["name"]


def test_ports_labels_and_secrets_agree():
    deployment, [container] = manifest("deployment.yaml"), pod()["containers"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    policy, ports = manifest("network.yaml")["spec"], {port["name"]: port["containerPort"] for port in container["ports"]}
    selectors = [deployment["spec"]["selector"], manifest("disruption.yaml")["spec"]["selector"], policy["podSelector"]]
    assert [selector["matchLabels"] for selector in selectors] == [labels] * 3
    assert manifest("service.yaml")["spec"]["selector"] == labels
    assert {port["targetPort"] for port in manifest("service.yaml")["spec"]["ports"]} == {"http", "resp"}
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == set(ports)
    result = run("check", "--config", DIST / "kubernetes/server.toml", f"--tokens={DIST}/kubernetes/tokens.toml", env=SECRETS)
    assert result.returncode == 0, result.stderr
    served = dict(re.findall(r"^(http|resp|admin) +0\.0\.0\.0:(\d+)$", result.stdout, re.MULTILINE))
    assert {name: int(port) for name, port in served.items()} == ports
    # In both files, each variable that the settings name comes from the secret.
    wanted = set(re.findall(r"env:(\w+)", (DIST / "kubernetes/server.toml").read_text() + (DIST / "kubernetes/tokens.toml").read_text()))
    assert {variable["name"] for variable in container["env"]} == wanted == set(SECRETS)
    compose = yaml.safe_load((DIST / "compose.yaml").read_text())
    assert set(compose["services"]["ids"]["environment"]) == wanted
    assert all((DIST / config["file"]).is_file() for config in compose["configs"].values())


def test_the_shutdown_fits_into_the_grace_period():
    delay_ms = int(re.search(r"^drain-delay-ms = (\d+)", (DIST / "kubernetes/server.toml").read_text(), re.MULTILINE)[1])
    assert pod()["terminationGracePeriodSeconds"] >= delay_ms / 1000 + 30
    compose = yaml.safe_load((DIST / "compose.yaml").read_text())
    assert int(compose["services"]["ids"]["stop_grace_period"].removesuffix("s")) >= delay_ms / 1000 + 30


def test_the_probe_of_compose_takes_the_settings():
    """The probe fails because no server answers, not because of the settings."""
    compose = yaml.safe_load((DIST / "compose.yaml").read_text())
    _, program, command, *_ = compose["services"]["ids"]["healthcheck"]["test"]
    assert (program, command) == ("frazil-server", "health")
    settings = ["--config", DIST / "kubernetes/server.toml", f"--tokens={DIST}/kubernetes/tokens.toml", "--admin=127.0.0.1:1"]
    result = run("health", *settings, env=os.environ | SECRETS)
    assert result.returncode == 1 and result.stdout.startswith("127.0.0.1:1 does not answer"), result
