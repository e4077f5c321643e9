"""The Dockerfile: linted, without root, and with all that a run needs."""

import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.support.image_steps import copied, steps, words


def taken(repository: Path) -> list[str]:
    return [source for step in steps(repository) if step.instruction == "COPY" for source in copied(step)[0]]


def test_hadolint_finds_nothing(repository):
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, "deploy/Dockerfile"], cwd=repository, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_everything_that_is_copied_exists_and_reaches_the_build(repository):
    lines = (repository / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*", "otherwise .venv and out are sent, too"
    kept = [rule[1:] for rule in rules if rule.startswith("!")]
    for source in taken(repository):
        assert (repository / source).exists(), source
        assert any(fnmatch(source, rule) or source.startswith(f"{rule}/") for rule in kept), source
    assert not [
        rule
        for rule in kept
        if not any(source == rule or source.startswith(f"{rule}/") for source in taken(repository))
    ]


def test_the_scripts_find_all_that_they_name(repository):
    """What `$root/…` names in spark-submit.sh and bootstrap.sh, other than what they make."""
    made = {".venv", "dist", "out"}
    text = (repository / "spark-submit.sh").read_text() + (repository / "bootstrap.sh").read_text()
    named = set(re.findall(r"\$root/([\w.-]+)", text)) - made
    assert {"conf", "jobs", "txnlib", "bootstrap.sh", "pyproject.toml", "examples"} <= named
    assert named <= {source.split("/")[0] for source in taken(repository)}


def test_the_container_runs_without_root_under_the_user_of_the_manifests(repository):
    user = [step.value for step in steps(repository) if step.instruction == "USER"][-1]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user), "Kubernetes checks runAsNonRoot only for numbers"
    manifest = (repository / "deploy" / "kubernetes" / "base" / "cronjob.yaml").read_text()
    assert {f"runAsUser: {user.split(':')[0]}", f"runAsGroup: {user.split(':')[1]}"} <= {
        line.strip() for line in manifest.splitlines()
    }


def test_the_java_of_the_image_is_one_that_the_scripts_take(repository):
    (installed,) = [step.value for step in steps(repository) if step.instruction == "RUN" and "apt-get" in step.value]
    (version,) = re.findall(r"openjdk-(\d+)-jre-headless", installed)
    (accepted,) = re.findall(r"version\\ =\\ \(([\d|]+)\)", (repository / "bootstrap.sh").read_text())
    assert version in accepted.split("|")
    assert {word for word in words(repository, "ENTRYPOINT") if "/" not in word} == {"tini", "-g", "--"}
    assert " tini " in installed


@pytest.mark.parametrize("instruction", ["ENTRYPOINT", "CMD"])
def test_a_container_without_arguments_prints_its_help(repository, instruction):
    expected = {"ENTRYPOINT": "/opt/txnlib/spark-submit.sh", "CMD": "--help"}[instruction]
    assert words(repository, instruction)[-1] == expected
