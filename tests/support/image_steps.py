"""The steps of deploy/Dockerfile, linted or carried out without a container engine."""

import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from dockerfile_parse import DockerfileParser


@dataclass(frozen=True)
class Step:
    """An instruction and its value, on one line."""

    instruction: str
    value: str


def steps(repository: Path) -> list[Step]:
    """All instructions of the file, in order."""
    parser = DockerfileParser(fileobj=BytesIO((repository / "deploy" / "Dockerfile").read_bytes()))
    return [Step(each["instruction"], each["value"]) for each in parser.structure if each["instruction"] != "COMMENT"]


def copied(step: Step) -> tuple[list[str], str]:
    """What a COPY takes from the repository, and where it puts it."""
    *sources, target = shlex.split(step.value)
    return sources, target


def words(repository: Path, instruction: str) -> list[str]:
    """The last ENTRYPOINT or CMD."""
    found: list[str] = json.loads([each.value for each in steps(repository) if each.instruction == instruction][-1])
    return found


def carry_out(repository: Path, root: Path, environment: dict[str, str]) -> Path:
    """Carries out the COPY steps and, except for that of Debian's packages, the RUN steps. Returns the folder of the
    image.

    An absolute path of the image is a path below `root`."""
    place, environment = Path("/"), dict(environment)
    for step in steps(repository):
        if step.instruction == "WORKDIR":
            place = Path(step.value)
            inside(root, step.value).mkdir(parents=True, exist_ok=True)
        elif step.instruction == "ENV" and "HOME=" not in step.value:  # the test has a home folder of its own
            environment.update(word.split("=", 1) for word in shlex.split(step.value))
        elif step.instruction == "COPY":
            sources, target = copied(step)
            folder = inside(root, str(place / target))
            for source in sources:
                _copy(repository / source, folder)
        elif step.instruction == "RUN" and "apt-get" not in step.value:
            done = subprocess.run(
                ["bash", "-c", step.value], cwd=inside(root, str(place)), env=environment, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{step.value}\n{done.stdout}{done.stderr}"
    return inside(root, "/opt/txnlib")


def inside(root: Path, path: str) -> Path:
    """Where a path of the image is on this machine."""
    return root / path.lstrip("/")


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of everything below a folder: equal before and after if nothing was written there."""
    found = {}
    for path, _, files in os.walk(folder):
        for name in (*files, ""):
            stat = os.lstat(os.path.join(path, name))
            found[os.path.join(path, name)] = (stat.st_size if name else 0, stat.st_mtime_ns)
    return found


def _copy(source: Path, folder: Path) -> None:
    """As COPY does: of a folder, what is in it."""
    if source.is_dir():
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, folder)
