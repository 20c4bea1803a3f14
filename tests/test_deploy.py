"""What several machines are deployed with: valid by the schemas of Kubernetes and of Dagster, and agreeing with each other."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import dagster as dg
import kubernetes_validate
import pytest
import yaml

from assets.stage.dagster_internals import read_storage_settings
from resources.gateway.gateway import Gateway
from tests.conftest import ROOT
from tests.manifests import MANIFESTS, all_documents, documents, job_of_a_run, named, on_kubernetes, pods, values
from tests.test_operate import unknown

DEPLOY = ROOT / "deploy"
VERSIONS = ("1.30", "1.36")
"""Of Kubernetes: the oldest and the newest whose schemas are at hand."""
MADE_BY_HAND = {"dtef-database", "dtef-secrets", "dtef-tokens"}
LAUNCHING = ("dtef-code", "dtef-daemon", "dtef-web")
"""Pods that start and end runs."""


class TestManifests:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
    def test_they_are_valid_by_the_schemas_of_kubernetes(self, path: Path, version: str) -> None:
        for one in [*documents(path), *documents(path, samples=True)]:
            kubernetes_validate.validate(one, version, strict=True)

    @pytest.mark.parametrize("name", sorted(pods()))
    def test_pods_start_programs_that_exist_with_options_they_have(self, name: str) -> None:
        (container,) = pods()[name]["containers"]
        assert unknown(list(container["args"])) is None

    @pytest.mark.parametrize("samples", [False, True])
    def test_what_they_refer_to_is_there_or_is_made_by_hand(self, samples: bool) -> None:
        maps, accounts = named("ConfigMap", samples), named("ServiceAccount", samples)
        for pod in pods(samples).values():
            assert pod["serviceAccountName"] in accounts
            volumes = {one["name"]: one for one in pod["volumes"]}
            for one in volumes.values():
                assert one.get("configMap", {}).get("name", "dtef-files") in maps
                assert one.get("secret", {}).get("secretName", "dtef-tokens") in MADE_BY_HAND
                assert one.get("persistentVolumeClaim", {}).get("claimName", "dtef-surveys") in named("PersistentVolumeClaim")
            for mount in pod["containers"][0]["volumeMounts"]:
                assert mount["name"] in volumes
                assert "subPath" not in mount or mount["subPath"] in maps["dtef-dagster"]["data"]
            for source in pod["containers"][0]["envFrom"]:
                assert source.get("configMapRef", {}).get("name", "dtef-environment") in maps
                assert source.get("secretRef", {}).get("name", "dtef-secrets") in MADE_BY_HAND
        (binding,) = named("RoleBinding").values()
        assert binding["roleRef"]["name"] in named("Role")
        assert {one["name"] for one in binding["subjects"]} <= set(accounts)

    def test_services_lead_to_a_port_that_a_pod_listens_on(self) -> None:
        for name, service in named("Service").items():
            ports = {one["containerPort"] for one in pods()[name]["containers"][0]["ports"]}
            assert {one["port"] for one in service["spec"]["ports"]} == ports
            assert {str(port) for port in ports} <= set(pods()[name]["containers"][0]["args"])
        (server,) = yaml.safe_load(named("ConfigMap")["dtef-dagster"]["data"]["workspace.yaml"])["load_from"]
        assert server["grpc_server"]["host"] in named("Service")

    def test_no_secret_is_in_them(self) -> None:
        assert named("Secret") == {}
        environment = named("ConfigMap")["dtef-environment"]["data"]
        assert [name for name in environment if re.search("KEY|PASSWORD|TOKEN|SECRET|RESPONSES|POSTGRES", name)] == []

    def test_what_starts_or_ends_runs_may_do_so(self) -> None:
        """The code server could not end the run of an evaluation that was cancelled."""
        (binding,), (role,) = named("RoleBinding").values(), named("Role").values()
        assert {"create", "delete"} <= set(role["rules"][0]["verbs"])
        with_role = {one["name"] for one in binding["subjects"]}
        assert {name for name, pod in pods().items() if pod["serviceAccountName"] in with_role} == set(LAUNCHING)
        for pod in (pods()[name] for name in LAUNCHING):
            assert pod.get("automountServiceAccountToken", True)
            assert named("ServiceAccount")[pod["serviceAccountName"]].get("automountServiceAccountToken", True)

    def test_pods_tell_in_which_namespace_runs_are_made(self) -> None:
        """Runs were made in the namespace `default`, where the account has no role."""
        own = {"name": "DTEF_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
        assert [name for name, pod in pods().items() if own not in pod["containers"][0]["env"]] == []
        assert [one for one in all_documents() if "namespace" in one["metadata"]] == []

    def test_only_what_asks_providers_has_their_keys(self) -> None:
        given = {
            name: {one["secretRef"]["name"] for one in pod["containers"][0]["envFrom"] if "secretRef" in one}
            for name, pod in pods().items()
        }
        both = {"dtef-database", "dtef-secrets"}
        assert given == {"dtef-api": both, "dtef-code": both, "dtef-daemon": {"dtef-database"}, "dtef-web": {"dtef-database"}}

    def test_what_asks_for_no_password_is_closed_to_other_pods(self) -> None:
        policies = named("NetworkPolicy")
        assert set(policies) == {"dtef-code", "dtef-web"}
        for name, policy in policies.items():
            assert (
                policy["spec"]["podSelector"]["matchLabels"]
                == named("Deployment")[name]["spec"]["template"]["metadata"]["labels"]
            )
            (rule,), (port,) = policy["spec"]["ingress"], pods()[name]["containers"][0]["ports"]
            assert [one["port"] for one in rule["ports"]] == [port["containerPort"]]
        allowed = {name: list(values(one["spec"]["ingress"], "matchLabels")) for name, one in policies.items()}
        assert allowed == {
            "dtef-code": [{"app": "dtef-daemon"}, {"app": "dtef-web"}],
            "dtef-web": [{"dtef-may-connect-to": "web"}],
        }

    def test_nothing_runs_as_root_or_may_become_it(self) -> None:
        for pod in pods().values():
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", "postgresql+psycopg2://u:p@127.0.0.1:1/d")
    monkeypatch.setenv("DTEF_NAMESPACE", "evaluations")
    return tmp_path


class TestSettingsOfDagster:
    def test_dagster_takes_them(self, home: Path) -> None:
        (home / "dagster.yaml").write_text(on_kubernetes(), encoding="utf-8")
        assert read_storage_settings(home)["postgres_url"]

    @pytest.mark.parametrize("samples", [False, True])
    def test_the_job_of_a_run_is_valid_and_has_what_it_needs(self, home: Path, samples: bool) -> None:
        namespace, job = job_of_a_run(home, "evaluations", samples)
        assert namespace == "evaluations"
        for version in VERSIONS:
            kubernetes_validate.validate(job, version, strict=True)
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["serviceAccountName"] in named("ServiceAccount")
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["enableServiceLinks"] is False
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["image"] == "dtef:0.1.0"
        assert {"configMapRef": {"name": "dtef-environment"}} in container["envFrom"]
        assert {"secretRef": {"name": "dtef-secrets"}} in container["envFrom"]
        assert {"secretRef": {"name": "dtef-database"}} in container["envFrom"]
        # The settings of Dagster are among what the job is started with.
        places = {one["mountPath"] for one in container["volumeMounts"]}
        assert places == {"/etc/dtef/files", "/var/lib/dtef/surveys"} if samples else {"/etc/dtef/files"}
        assert pod.get("imagePullSecrets", []) == ([{"name": "dtef-registry"}] if samples else [])
        assert pod["automountServiceAccountToken"] is False
        given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
        assert given["DAGSTER_HOME"] == "/var/lib/dtef/dagster"
        assert given["DTEF_NAMESPACE"] == "evaluations"

    def test_a_run_that_is_terminated_has_time_to_store_what_it_was_answered(self, home: Path) -> None:
        """Its pod was killed the second in which calls in flight are given up."""
        _, job = job_of_a_run(home, "evaluations")
        grace = inspect.signature(Gateway.__init__).parameters["grace"].default
        cancel_s = yaml.safe_load(on_kubernetes())["run_monitoring"]["cancel_timeout_seconds"]
        assert grace + 30 <= job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] < cancel_s


class TestImage:
    def test_it_runs_as_the_user_that_the_pods_run_as(self) -> None:
        text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        users = {str(one) for one in values(all_documents(), "runAsUser")}
        assert re.findall(r"^USER (\d+)$", text, re.MULTILINE) == list(users) == ["10001"]
        assert "--uid 10001" in text


def test_messages_of_a_run_hold_no_password(home: Path) -> None:
    """What a job is started with tells where databases are by the names of variables alone."""
    (home / "dagster.yaml").write_text(on_kubernetes(), encoding="utf-8")
    from dagster._core.instance.ref import InstanceRef

    assert "u:p@" not in json.dumps(dg.serialize_value(InstanceRef.from_dir(str(home))))
