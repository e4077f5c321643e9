"""An audit in a bare folder, after the steps of the Dockerfile."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.image_steps import carry_out, contents, inside, words

#: What an image has of this machine's environment: how to reach mirrors.
MIRRORS = (
    "PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "DEFAULT_ARTIFACT_REPOSITORY", "https_proxy", "HTTPS_PROXY", "SSL_CERT_FILE",
)  # fmt: skip


@pytest.fixture(scope="module")
def root(repository, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("image")
    (root / "home").mkdir()
    carry_out(repository, root, environment(root) | {name: os.environ[name] for name in MIRRORS if name in os.environ})
    return root


def environment(root: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "LANG": "C.UTF-8"}


def run(repository: Path, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The entry point, without tini, in the last working folder, and without a network."""
    script = inside(root, words(repository, "ENTRYPOINT")[-1])
    nowhere = dict.fromkeys(("https_proxy", "PIP_INDEX_URL", "DEFAULT_ARTIFACT_REPOSITORY"), "http://127.0.0.1:1")
    return subprocess.run(
        [script, *arguments], cwd=inside(root, "/var/lib/txnlib"), env=environment(root) | nowhere, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def test_the_image_prints_its_help(repository, root):
    done = run(repository, root, *words(repository, "CMD"))
    assert (done.returncode, "Runs a job of txnlib" in done.stdout) == (0, True), done


def test_the_build_leaves_no_cache_behind(root):
    assert not (root / "home" / ".cache").exists()
    assert not list(inside(root, "/opt/txnlib").rglob("*.ivy"))


def test_the_image_audits_the_sample_and_writes_nothing_of_its_own(repository, root):
    """So its root file system can be read-only."""
    places = [inside(root, "/opt/txnlib"), root / "home"]
    before = [contents(place) for place in places]
    sample = str(inside(root, "/opt/txnlib/examples/quickstart/brokers"))
    done = run(repository, root, "audit", "--input", sample, "--output", "tables", "--fail-on", "hanging")
    assert (done.returncode, "1 HANGING" in done.stdout) == (3, True), done.stderr
    for place, earlier in zip(places, before, strict=True):
        later = contents(place)
        assert {path for path in earlier.keys() | later.keys() if earlier.get(path) != later.get(path)} == set()
    assert [path.name for path in inside(root, "/var/lib/txnlib").iterdir()] == ["tables"]


def test_the_image_answers_questions_about_tables(root):
    command = inside(root, "/opt/txnlib/.venv/bin/txn-audit")
    done = subprocess.run([command, "--version"], env=environment(root), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith("txn-audit ")) == (0, True), done
