"""Commands of the Databricks CLI in the documents, and names of the bundle."""

import argparse
from pathlib import Path

import yaml


def variables(repository: Path) -> set[str]:
    """The variables of the bundle."""
    return set(yaml.safe_load((repository / "databricks.yml").read_text())["variables"])


def parser(repository: Path) -> argparse.ArgumentParser:
    """Understands `databricks bundle validate|deploy|run` for this bundle, and ends the process at anything else."""
    targets = yaml.safe_load((repository / "databricks.yml").read_text())["targets"]
    jobs = yaml.safe_load((repository / "resources" / "nightly.yml").read_text())["resources"]["jobs"]
    root = argparse.ArgumentParser(prog="databricks", allow_abbrev=False)
    verbs = root.add_subparsers(required=True).add_parser("bundle").add_subparsers(required=True)
    for verb in ("validate", "deploy", "run"):
        command = verbs.add_parser(verb, allow_abbrev=False)
        command.add_argument("-t", "--target", choices=targets, required=True)
        command.add_argument(
            "--var", dest="variables", type=lambda text: [given.partition("=") for given in text.split(",")], required=True
        )
        if verb == "run":
            command.add_argument("job", choices=jobs)
    return root
