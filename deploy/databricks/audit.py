"""The nightly audit as a task of Databricks. It fails only if the audit failed.

The parameters are a folder, and then options of `audit`. The report page and the summary go to that folder. What
`--fail-on` names is no failure of this task: Databricks would retry it. The exit code is in the summary, and the next
task alerts.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory

#: Exit code of an audit that found what --fail-on names.
FOUND = 3


def main(argv: Sequence[str]) -> int | str:
    """Audits and copies the results. Returns the exit code, 0 if only `--fail-on` matched."""
    folder, *options = argv
    (audit,) = entry_points(group="console_scripts", name="txnlib-audit")
    # On the local disk first: the file system of volumes allows only some ways to write.
    with TemporaryDirectory() as local:
        files = [Path(local, "report.html"), Path(local, "summary.json")]
        sys.argv = [audit.name, *options, "--report", str(files[0]), "--summary", str(files[1])]
        code: int | str | None = 0
        try:
            audit.load()()
        except SystemExit as ended:
            code = ended.code
        Path(folder).mkdir(parents=True, exist_ok=True)
        for file in files:
            if file.exists():
                shutil.copyfile(file, Path(folder, file.name))
    return 0 if code == FOUND else code or 0


if __name__ == "__main__" and (code := main(sys.argv[1:])):
    sys.exit(code)  # only if it is not 0, as Databricks requires
