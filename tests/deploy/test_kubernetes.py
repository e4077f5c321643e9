"""The manifests of deploy/kubernetes: valid, confined, and with options that an audit takes."""

import re
from typing import Any

import kubernetes_validate
import pytest

from tests.support.image_steps import words
from tests.support.kustomize import build, pod
from txnlib import __version__
from txnlib.jobs import options
from txnlib.settings import read_settings_file

#: The first release in which podFailurePolicy is stable, and the newest.
VERSIONS = ("1.31", "1.37")
FOLDERS = ("base", "s3-keys", "s3-role")


@pytest.fixture(params=FOLDERS)
def manifests(request, repository) -> dict[tuple[str, str], dict[str, Any]]:
    return build(repository / "deploy" / "kubernetes" / request.param)


@pytest.fixture
def job(manifests) -> dict[str, Any]:
    return manifests["CronJob", "txnlib"]["spec"]


@pytest.fixture
def container(manifests) -> dict[str, Any]:
    (found,) = pod(manifests)["containers"]
    return found


def environment(manifests: dict[tuple[str, str], dict[str, Any]], container: dict[str, Any]) -> dict[str, str]:
    """The variables that come from config maps."""
    maps = [source["configMapRef"]["name"] for source in container["envFrom"] if "configMapRef" in source]
    return {name: value for each in maps for name, value in manifests["ConfigMap", each]["data"].items()}


def arguments(manifests: dict[tuple[str, str], dict[str, Any]], container: dict[str, Any]) -> list[str]:
    """The arguments as Kubernetes passes them."""
    values = environment(manifests, container)
    return [re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], word) for word in container["args"]]


def test_every_folder_is_tested(repository):
    assert {path.parent.name for path in (repository / "deploy" / "kubernetes").glob("*/kustomization.yaml")} == set(
        FOLDERS
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_follows_the_schema_of_kubernetes(manifests, version):
    for manifest in manifests.values():
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_container_runs_an_audit_with_options_that_it_takes(repository, manifests, container, tmp_path):
    tini = words(repository, "ENTRYPOINT")[:-1]
    assert container["command"] == [*tini, "/opt/txnlib/deploy/audit_and_push.py"]
    job, *given = arguments(manifests, container)
    assert job == options.AUDIT
    conf = tmp_path / "audit.toml"
    conf.write_text(manifests["ConfigMap", "txnlib-settings"]["data"]["audit.toml"])
    moved = [
        re.sub(r"^(--\w+=)/var/lib/", rf"\1{tmp_path}/", word).replace("/etc/txnlib/audit.toml", str(conf))
        for word in given
    ]
    parsed = options.parse(job, "", moved)
    assert (parsed.cluster, parsed.fail_on, parsed.mode) == ("blue", {"hanging", "stuck", "critical"}, "incremental")
    assert options.request_of(parsed).conf == str(conf)
    read_settings_file(conf)  # raises for a key that there is not
    assert environment(manifests, container)["PUSHGATEWAY_URL"].startswith("http://")


def test_an_answer_is_not_tried_again_and_a_failure_is(job, container):
    """Exit codes: 1 the audit failed, 2 bad usage, 3 --fail-on matched."""
    spec = job["jobTemplate"]["spec"]
    answers, drained = spec["podFailurePolicy"]["rules"]
    assert answers == {
        "action": "FailJob",
        "onExitCodes": {"containerName": container["name"], "operator": "In", "values": [2, 3]},
    }
    assert drained == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert spec["backoffLimit"] >= 1
    assert spec["template"]["spec"]["restartPolicy"] == "Never", "podFailurePolicy wants it"


def test_two_audits_never_run_at_once_or_an_audit_may_not_take_over(job, container):
    is_alone = job["concurrencyPolicy"] == "Forbid" and job["jobTemplate"]["spec"]["podReplacementPolicy"] == "Failed"
    assert ("--take-over" in container["args"]) == is_alone


def test_the_pod_is_as_restricted_as_kubernetes_can_ask_for(manifests, container):
    """The profile `restricted` of the pod security standards, and a read-only root."""
    context = pod(manifests)["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    own = container["securityContext"]
    assert own == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert pod(manifests)["automountServiceAccountToken"] is False


def test_every_file_lies_in_a_volume_and_no_volume_on_a_node(manifests, container):
    volumes = {volume["name"]: volume for volume in pod(manifests)["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert {mount["name"] for mount in mounts.values()} == volumes.keys()
    assert not [name for name, volume in volumes.items() if "hostPath" in volume], (
        "a pod runs on another node each night"
    )
    assert "/tmp" in mounts, "Spark's scratch, and the home folder of the image"
    for option, _, path in (word.partition("=") for word in arguments(manifests, container)):
        if path.startswith("/"):
            (mount,) = [mount for place, mount in mounts.items() if path.startswith(f"{place}/")]
            assert mount.get("readOnly", False) == (option in ("--input", "--conf")), option


def test_every_name_leads_to_a_manifest_or_is_left_to_the_user(manifests, container):
    template = pod(manifests)
    assert ("ServiceAccount", template["serviceAccountName"]) in manifests
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in template["volumes"]
        if "persistentVolumeClaim" in volume
    }
    maps = {volume["configMap"]["name"] for volume in template["volumes"] if "configMap" in volume}
    maps |= {source["configMapRef"]["name"] for source in container["envFrom"] if "configMapRef" in source}
    assert {name for kind, name in manifests if kind == "ConfigMap"} == maps
    assert claims - {name for kind, name in manifests if kind == "PersistentVolumeClaim"} <= {"kafka-captures"}


def test_the_image_is_that_of_this_version(container):
    assert container["image"] == f"registry.example.com/txnlib:{__version__}"


@pytest.mark.parametrize("folder", ["s3-keys", "s3-role"])
def test_a_bucket_is_read_with_credentials_that_no_file_contains(repository, folder):
    manifests = build(repository / "deploy" / "kubernetes" / folder)
    (container,) = pod(manifests)["containers"]
    assert environment(manifests, container).keys() >= {"AWS_REGION"}
    assert environment(manifests, container)["TXNLIB_INPUT"].startswith("s3://")
    secrets = [source["secretRef"]["name"] for source in container["envFrom"] if "secretRef" in source]
    roles = manifests["ServiceAccount", "txnlib"]["metadata"].get("annotations", {})
    assert (secrets, list(roles)) == {"s3-keys": (["txnlib-s3"], []), "s3-role": ([], ["eks.amazonaws.com/role-arn"])}[
        folder
    ]
    assert not [name for name in environment(manifests, container) if "KEY" in name or "TOKEN" in name]
