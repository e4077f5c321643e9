"""Manifests as `kustomize build` renders them, for the keys that deploy/kubernetes uses."""

from pathlib import Path
from typing import Any

import jsonpatch
import yaml

KEYS = {"apiVersion", "kind", "resources", "images", "patches"}


def build(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The manifests of a kustomization, by kind and name. Raises ValueError for a key that is not known here."""
    given = yaml.safe_load((folder / "kustomization.yaml").read_text())
    if unknown := given.keys() - KEYS:
        raise ValueError(f"{folder}: {unknown}")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name in given["resources"]:
        path = folder / name
        parts = build(path).values() if path.is_dir() else yaml.safe_load_all(path.read_text())
        for part in parts:
            key = (part["kind"], part["metadata"]["name"])
            assert key not in found, key
            found[key] = part
    for patch in given.get("patches", []):
        key = (patch["target"]["kind"], patch["target"]["name"])
        found[key] = jsonpatch.apply_patch(found[key], yaml.safe_load(patch["patch"]))
    for image in given.get("images", []):
        for container in containers(found):
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
    return found


def pod(manifests: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    """The pod of the only CronJob."""
    (job,) = [part for (kind, _), part in manifests.items() if kind == "CronJob"]
    template: dict[str, Any] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return template


def containers(manifests: dict[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    return [container for kind, _ in manifests if kind == "CronJob" for container in pod(manifests)["containers"]]
