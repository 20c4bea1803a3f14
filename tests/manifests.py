"""What is applied to a cluster of Kubernetes, and what Dagster would hand to it for a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import kubernetes
import pytest
import yaml
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.instance.ref import InstanceRef
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster_k8s.job import construct_dagster_k8s_job

from assets.kubernetes_runs import WatchedK8sRunLauncher
from tests.conftest import ROOT

MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").rglob("*.yaml"))
_SAMPLE = re.compile(
    r"^( *)# ((?:  )?(?:- \{name: surveys,|imagePullSecrets:|image_pull_secrets:|DTEF_PANEL:|panel\.yaml:|models: \[).*)$",
    re.MULTILINE,
)
"""A line that holds once the `#` before it is taken away."""


def documents(path: Path, samples: bool = False) -> list[dict[str, Any]]:
    """`samples`: as if all that is given as a sample were switched on."""
    text = path.read_text(encoding="utf-8")
    return [one for one in yaml.safe_load_all(_SAMPLE.sub(r"\1\2", text) if samples else text) if one]


def all_documents(samples: bool = False) -> list[dict[str, Any]]:
    return [one for path in MANIFESTS for one in documents(path, samples)]


def named(kind: str, samples: bool = False) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in all_documents(samples) if one["kind"] == kind}


def pods(samples: bool = False) -> dict[str, dict[str, Any]]:
    return {name: one["spec"]["template"]["spec"] for name, one in named("Deployment", samples).items()}


def values(tree: Any, key: str) -> Iterator[Any]:
    """What stands under a key, at any depth."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key:
                yield value
            yield from values(value, key)
    elif isinstance(tree, list):
        for one in tree:
            yield from values(one, key)


def on_kubernetes(samples: bool = False) -> str:
    """The `dagster.yaml` of all pods."""
    return str(named("ConfigMap", samples)["dtef-dagster"]["data"]["dagster.yaml"])


def job_of_a_run(home: Path, namespace: str, samples: bool = False) -> tuple[str | None, dict[str, Any]]:
    """What Dagster's launcher would hand to Kubernetes for a run, and in which namespace, if it were in a pod of this one."""
    (home / "dagster.yaml").write_text(on_kubernetes(samples), encoding="utf-8")
    pointer = ModuleCodePointer("assets.definitions", "defs", "/var/lib/dtef")
    repository = RepositoryPythonOrigin("/opt/dtef/bin/python", pointer, container_image="dtef:0.1.0")
    run = dg.DagsterRun(job_name="survey_pipeline", job_code_origin=JobPythonOrigin("survey_pipeline", repository))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dagster_k8s.launcher.load_kubernetes_config", lambda **_: None)
        patch.setenv("DTEF_NAMESPACE", namespace)
        launcher = InstanceRef.from_dir(str(home)).run_launcher
        assert isinstance(launcher, WatchedK8sRunLauncher)
        context = launcher.get_container_context_for_run(run)
        job = construct_dagster_k8s_job(
            context.get_k8s_job_config("dtef:0.1.0", launcher),
            args=["dagster", "api", "execute_run"],
            job_name="dagster-run",
            user_defined_k8s_config=context.run_k8s_config,
        )
    return context.namespace, dict(kubernetes.client.ApiClient().sanitize_for_serialization(job))
