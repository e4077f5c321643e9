"""What a command loads before it answers: most of its processor time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.delta_tables import READ_BY_COMMANDS, write, write_run

#: Libraries that no answer needs: each takes as long as all of the rest.
NEVER = ("pyarrow", "numpy", "pandas", "pyspark", "pydantic", "jinja2", "rich", "prometheus_client", "fsspec")
#: Command -> modules of ours that it does not use.
UNUSED = {
    "list": (
        "txnlib.ask.report_rows",
        "txnlib.ask.terminal_report",
        "txnlib.page.report_page",
        "txnlib.settings",
        "txnlib.readers",
    ),
    "abort-plan": ("txnlib.ask.report_rows", "txnlib.ask.terminal_report", "txnlib.settings", "txnlib.readers"),
    "runs": ("txnlib.ask.report_rows", "txnlib.core.verdicts", "txnlib.core.kafka", "txnlib.readers"),
    "report": ("txnlib.page.report_page", "txnlib.settings", "txnlib.readers"),
}
LOADED = (
    "import json, sys; from txnlib.ask.main import main; code = main(sys.argv[1:]); print(json.dumps([code,"
    " *sys.modules]))"
)


@pytest.mark.parametrize("command", UNUSED)
def test_an_answer_loads_no_more_than_it_uses(tmp_path, command):
    write_run(tmp_path)
    for name in READ_BY_COMMANDS:
        write(tmp_path, name)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, command, "--tables", str(tmp_path)], capture_output=True, text=True, check=True
    )
    code, *loaded = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert {"deltalake"} <= {*loaded}
    assert not {*NEVER, *UNUSED[command]} & {*loaded}
