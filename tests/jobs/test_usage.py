"""Usage errors of jobs: text, exit code, no table written."""

import json
import os
import re
from pathlib import Path

import pytest

from txnlib.errors import ConfigError, UsageError
from txnlib.jobs import audit, options
from txnlib.jobs.program import main
from txnlib.jobs.progress import LINES
from txnlib.settings import read_settings_file


def said(capsys, job, *argv: str) -> tuple[int, str]:
    code = main(job, [str(word) for word in argv])
    captured = capsys.readouterr()
    assert captured.out == "", "the report's place stays empty"
    return code, captured.err


@pytest.fixture
def segment(tmp_path) -> Path:
    folder = tmp_path / "capture" / "1" / "orders-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(b"")
    return tmp_path / "capture"


IO = ("--input", "x", "--output", "y")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--input is missing"),
        (["--input", "x"], "--output is missing"),
        ([*IO, "--schema", "a.b"], "mutually exclusive"),
        ([*IO, "--as-of", "yesterday"], "--as-of yesterday: expected ISO-8601"),
        ([*IO, "--fail-on", "hanging,lost"], "--fail-on lost: expected some of hanging"),
        ([*IO, "--report", "/proc/none/r.html"], "/proc/none/r.html: cannot be written"),
        ([*IO, "--metrics", "/proc/none/t.prom"], "/proc/none/t.prom: cannot be written"),
        ([*IO, "--summary", "/"], "/: is a folder; name a file"),
        ([*IO, "--colour"], "unrecognized arguments: --colour"),
        ([*IO, "--stuck-after", "soon"], "invalid int value: 'soon'"),
        ([*IO, "--as-of", "9" * 5_000], f"--as-of {'9' * 40}: expected ISO"),
        ([*IO, "--as-of=-1"], "--as-of -1: expected an instant from 1970"),
        ([*IO, "--max-transaction-timeout", "2147483648"], "-timeout 2147483648: expected"),
        ([*IO, "--stuck-after", "-1"], "--stuck-after -1: expected a whole number from 0 to"),
        ([*IO, "--stuck-after", "9" * 5_000], "--stuck-after: invalid int value"),
        ([*IO, "--stuck-after", "9" * 4_000], "--stuck-after (a huge number): expected"),
        ([*IO, "--transaction-max-timeout-ms", "-1"], "--transaction-max-timeout-ms -1: expected"),
        ([*IO, "--coordinator-partitions", "0"], "--coordinator-partitions 0: expected"),
        ([*IO, "--coordinator-partitions", "100001"], "from 1 to 100000"),
        ([*IO, "--keep-days", "0"], "--keep-days 0: expected"),
        ([*IO, "--keep-days", "99999999999"], "--keep-days 99999999999: expected"),
        ([*IO, "--cluster", "eu\udcff"], "--cluster eu\\xff: is not UTF-8"),
        (["--input", "/nowhere\udcff", "--output", "y"], "/nowhere\\xff: no such file or folder"),
    ],
)
def test_bad_usage_is_named_and_exits_with_2(capsys, argv, message):
    code, err = said(capsys, audit.job, *argv)
    assert (code, message in err) == (2, True), err


SEGMENT = {"capture/1/orders-0/00000000000000000000.log": ""}


@pytest.mark.parametrize(
    ("files", "inputs", "message"),
    [
        ({}, ["nowhere"], "nowhere: no such file or folder. Check --input"),
        ({}, ["."], ": no Kafka log among its 0 files. Expected <topic>-<partition>/<20 digits>.log"),
        ({"capture/notes.txt": "buy milk\n"}, ["capture"], "capture: no Kafka log among its 1 files"),
        ({}, ["ftp://host/capture"], "ftp://host/capture: only local paths"),
        (
            {"capture/capture.json": '{"coordinator_partitions": "many"}'},
            ["capture"],
            "/capture.json: coordinator_partitions",
        ),
        (
            {"capture/capture.json": '{"cluster": "a"}', "other/capture.json": '{"cluster": "b"}'},
            ["capture", "other"],
            "different clusters (a, b)",
        ),
    ],
)
@pytest.mark.parametrize("job", [audit.job, audit.ingest_dumps])
def test_an_input_that_cannot_be_audited_is_named_and_nothing_is_written(
    capsys, tmp_path, monkeypatch, job, files, inputs, message
):
    monkeypatch.chdir(tmp_path)
    for name, content in (files | (SEGMENT if "capture/capture.json" in files else {})).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    code, err = said(
        capsys, job, *[word for each in inputs for word in ("--input", each)], "--output", tmp_path / "out"
    )
    assert (code, message in err) == (2, True), err
    assert not (tmp_path / "out").exists()


def test_a_settings_file_that_is_a_fifo_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ConfigError, match="is no file; check conf="):
        read_settings_file(tmp_path / "fifo")


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("[thresholds]\nstuck_after = 5\n", "thresholds.stuck_after", "unknown key; expected one of thresholds."),
        ("[threshold]\n", "threshold", "unknown key"),
        ('[thresholds]\nstuck_after_minutes = "soon"\n', "thresholds.stuck_after_minutes", "valid integer"),
        ("[cluster]\ncoordinator_partitions = 0\n", "cluster.coordinator_partitions", "greater than or equal to 1"),
        ("[thresholds\n", "", "is not TOML"),
        ("[thresholds]\nstuck_after_minutes = 1.0\n", "thresholds.stuck_after_minutes", "valid integer"),
        ("[thresholds]\nstuck_after_minutes = true\n", "thresholds.stuck_after_minutes", "valid integer"),
        (
            "[thresholds]\nclock_tolerance_ms = 2147483648\n",
            "thresholds.clock_tolerance_ms",
            "less than or equal to 2147483647",
        ),
        (
            "[cluster]\ncoordinator_partitions = 100001\n",
            "cluster.coordinator_partitions",
            "less than or equal to 100000",
        ),
        (f"[thresholds]\nclock_tolerance_ms = {'9' * 5_000}\n", "", "is not TOML"),
    ],
)
def test_a_settings_file_that_cannot_be_used_names_file_and_key(capsys, segment, tmp_path, text, key, problem):
    conf = tmp_path / "audit.toml"
    conf.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_settings_file(conf)
    assert (caught.value.path, caught.value.key) == (str(conf), key)
    assert problem in caught.value.problem
    code, err = said(capsys, audit.job, "--input", segment, "--output", tmp_path / "out", "--conf", conf)
    assert (code, str(conf) in err and problem in err) == (2, True)


def test_a_report_without_tables_says_which_job_comes_first(capsys, spark, tmp_path):
    code, err = said(capsys, audit.report_transactions, "--output", tmp_path / "out")
    assert (code, f"table audit_runs is missing in {tmp_path / 'out'}: run the job" in err) == (2, True)


def test_every_option_of_the_contract_that_exists_says_what_it_does():
    assert all(option.about for option in options.OPTIONS)
    assert len({option.name for option in options.OPTIONS}) == len(options.OPTIONS)


def test_lines_are_text_or_json_with_their_time_and_errors_are_never_quiet(capsys):
    def told(*argv: str) -> list[str]:
        def job(argv):
            LINES.progress('read "a"')
            raise UsageError("no")

        assert main(job, argv) == 2
        return capsys.readouterr().err.splitlines()

    stamped, error = told()
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ read "a"', stamped)
    assert error == "txnlib: no"
    assert told("--quiet") == ["txnlib: no"]
    lines = [json.loads(line) for line in told("--log-format", "json")]
    assert [(line["level"], line["message"]) for line in lines] == [("INFO", 'read "a"'), ("ERROR", "txnlib: no")]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines)
    assert len(told("--log-format")) == 2, "the job's own parser refuses it"


def test_every_option_stands_under_a_heading(capsys):
    assert {name for names in options.GROUPS.values() for name in names} <= {option.name for option in options.OPTIONS}
    with pytest.raises(SystemExit):
        options.parse(options.AUDIT, "", ["--help"])
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{heading}:\n") for heading in options.GROUPS]
    assert places == sorted(places)
    assert shown.count("\n  --") == len([option for option in options.OPTIONS if options.AUDIT in option.jobs])
