"""Commands of docker, kubectl and databricks in the documents: they name what exists, and a container takes its
arguments."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.support.kustomize import build, containers
from txnlib.jobs import options


def understand(repository: Path, words: Sequence[str]) -> None:
    """Fails unless the command is one that this repository supports as shown."""
    given = (_bundle(repository) if words[0] == "databricks" else _parser()).parse_args(words[1:])
    if words[0] == "databricks":
        known = yaml.safe_load((repository / "databricks.yml").read_text())["variables"]
        assert {name for name, _, _ in given.variables} <= known.keys()
    elif words[0] == "docker" and words[1] == "build":
        assert (repository / given.file).is_file()
        assert (repository / given.context).samefile(repository)
    elif words[0] == "docker":
        job, *arguments = given.arguments
        options.parse(job, "", arguments)
    elif hasattr(given, "kustomize"):
        assert build(repository / given.kustomize)
    elif hasattr(given, "source"):
        kind, name = given.source.split("/")
        assert kind == "cronjob"
        assert ("CronJob", name) in build(repository / "deploy" / "kubernetes" / "base")
    else:
        (container,) = containers(build(repository / "deploy" / "kubernetes" / "s3-keys"))
        assert given.name in [source.get("secretRef", {}).get("name") for source in container["envFrom"]]
        assert [word.partition("=")[0] for word in given.literals] == ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]


def _parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(allow_abbrev=False)
    verbs = root.add_subparsers(required=True)
    made = verbs.add_parser("build", allow_abbrev=False)
    made.add_argument("--file", required=True)
    made.add_argument("--tag", required=True)
    made.add_argument("context")
    run = verbs.add_parser("run", allow_abbrev=False)
    for switch in ("--rm", "--read-only"):
        run.add_argument(switch, action="store_true", required=True)
    run.add_argument("--tmpfs", required=True, choices=["/tmp"])
    run.add_argument("--volume", action="append")
    run.add_argument("image")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    apply = verbs.add_parser("apply", allow_abbrev=False)
    apply.add_argument("--namespace", required=True)
    apply.add_argument("--kustomize", required=True)
    kinds = verbs.add_parser("create", allow_abbrev=False).add_subparsers(required=True)
    job = kinds.add_parser("job", allow_abbrev=False)
    job.add_argument("--namespace", required=True)
    job.add_argument("--from", dest="source", required=True)
    job.add_argument("name")
    secret = kinds.add_parser("secret", allow_abbrev=False)
    secret.add_argument("kind", choices=["generic"])
    secret.add_argument("name")
    secret.add_argument("--namespace", required=True)
    secret.add_argument("--from-literal", dest="literals", action="append", required=True)
    return root


def _bundle(repository: Path) -> argparse.ArgumentParser:
    """Understands `databricks bundle validate|deploy|run` for this bundle, and ends the process at anything else."""
    targets = yaml.safe_load((repository / "databricks.yml").read_text())["targets"]
    jobs = yaml.safe_load((repository / "resources" / "nightly.yml").read_text())["resources"]["jobs"]
    root = argparse.ArgumentParser(prog="databricks", allow_abbrev=False)
    verbs = root.add_subparsers(required=True).add_parser("bundle").add_subparsers(required=True)
    for verb in ("validate", "deploy", "run"):
        command = verbs.add_parser(verb, allow_abbrev=False)
        command.add_argument("-t", "--target", choices=targets, required=True)
        command.add_argument(
            "--var",
            dest="variables",
            type=lambda text: [given.partition("=") for given in text.split(",")],
            required=True,
        )
        if verb == "run":
            command.add_argument("job", choices=jobs)
    return root
