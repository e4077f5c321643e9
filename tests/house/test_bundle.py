"""The Databricks bundle, as far as it can be checked without Databricks.

Held against a part of the bundle's JSON schema (databricks/cli, bundle/schema/jsonschema.json), picked by hand: its
licence allows it to be used with Databricks only, so it is not here.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from txnlib.jobs import options

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
PAUSE = {"enum": ["PAUSED", "UNPAUSED"]}


def thing(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def many(what: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": what, "minItems": 1}


def named(what: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": what}


TASK = thing(
    "task_key", task_key=TEXT, environment_key=TEXT, job_cluster_key=TEXT, description=TEXT,
    depends_on=many(thing("task_key", task_key=TEXT)), disable_auto_optimization={"type": "boolean"}, max_retries=WHOLE,
    min_retry_interval_millis=WHOLE, timeout_seconds=WHOLE, email_notifications=thing(on_failure=many(TEXT)),
    notification_settings=thing(alert_on_last_attempt={"type": "boolean"}),
    spark_python_task=thing("python_file", python_file=TEXT, parameters=many(TEXT)),
    libraries=many({"oneOf": [thing("whl", whl=TEXT), thing("pypi", pypi=thing("package", package=TEXT))]}),
)  # fmt: skip
CLUSTER = thing(
    "spark_version", spark_version=TEXT, node_type_id=TEXT, num_workers=WHOLE,
    data_security_mode={"enum": ["SINGLE_USER", "USER_ISOLATION"]},
)  # fmt: skip
JOB = thing(
    "name",
    "tasks",
    name=TEXT,
    description=TEXT,
    schedule=thing(
        "quartz_cron_expression", "timezone_id", quartz_cron_expression=TEXT, timezone_id=TEXT, pause_status=PAUSE
    ),
    parameters=many(thing("name", "default", name=TEXT, default=TEXT)),
    max_concurrent_runs=WHOLE,
    queue=thing("enabled", enabled={"type": "boolean"}),
    tasks=many(TASK),
    environments=many(
        thing("environment_key", environment_key=TEXT, spec=thing(environment_version=TEXT, dependencies=many(TEXT)))
    ),
    job_clusters=many(thing("job_cluster_key", "new_cluster", job_cluster_key=TEXT, new_cluster=CLUSTER)),
)
SCHEMA = thing("catalog_name", "name", catalog_name=TEXT, name=TEXT, comment=TEXT)
VOLUME = thing(
    "catalog_name", "name", "schema_name", catalog_name=TEXT, schema_name=TEXT, name=TEXT,
    volume_type={"enum": ["MANAGED", "EXTERNAL"]}, comment=TEXT,
)  # fmt: skip
DASHBOARD = thing(display_name=TEXT, file_path=TEXT, warehouse_id=TEXT, dataset_catalog=TEXT, dataset_schema=TEXT)
BUNDLE = thing(
    bundle=thing("name", name=TEXT),
    include=many(TEXT),
    artifacts=named(thing("type", type={"const": "whl"}, build=TEXT)),
    sync=thing(exclude=many(TEXT)),
    variables=named(thing(description=TEXT, default=TEXT)),
    targets=named(
        thing(
            mode={"enum": ["development", "production"]}, default={"type": "boolean"}, workspace=thing(root_path=TEXT)
        )
    ),
    resources=thing(schemas=named(SCHEMA), volumes=named(VOLUME), jobs=named(JOB), dashboards=named(DASHBOARD)),
)


@pytest.fixture(scope="module")
def files(repository) -> list[Path]:
    return [repository / "databricks.yml", *sorted((repository / "resources").glob("*.yml"))]


@pytest.fixture(scope="module")
def bundle(files) -> dict[str, Any]:
    """The bundle with what it includes, as the CLI puts it together."""
    main, *included = (yaml.safe_load(file.read_text()) for file in files)
    resources: dict[str, Any] = {}
    for part in included:
        for kind, found in part["resources"].items():
            resources.setdefault(kind, {}).update(found)
    return {**main, "resources": resources}


def test_the_bundle_has_what_its_schema_knows_and_nothing_else(files):
    for file in files:
        jsonschema.validate(yaml.safe_load(file.read_text()), BUNDLE)
    assert len(files) >= 4


def test_every_reference_leads_to_something_and_every_variable_is_used(files, bundle):
    used = set()
    for file in files:
        for path in re.findall(r"\$\{([^}]+)\}", file.read_text()):
            kind, *names = path.split(".")
            if kind == "var":
                used.add(names[0])
            elif kind == "resources":
                found: Any = bundle["resources"]
                for name in names:
                    found = found[name]
            else:
                assert path in ("bundle.name", "bundle.target", "workspace.current_user.userName"), path
    assert used == bundle["variables"].keys()


JOBS = ["nightly_serverless", "nightly_classic"]


def tasks(bundle: dict[str, Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tasks `audit` and `alert` of a job."""
    audit, alert = bundle["resources"]["jobs"][name]["tasks"]
    assert (audit["task_key"], alert["task_key"]) == ("audit", "alert")
    return audit, alert


def arguments(bundle: dict[str, Any], name: str, task: dict[str, Any]) -> list[str]:
    """What a task gets on 2026-11-21."""
    parameters = bundle["resources"]["jobs"][name]["parameters"]
    values = {f"job.parameters.{each['name']}": _filled(bundle, each["default"]) for each in parameters}
    values["job.start_time.iso_date"] = "2026-11-21"
    return [
        re.sub(r"\{\{(.+?)\}\}", lambda found: values[found[1]], word)
        for word in task["spark_python_task"]["parameters"]
    ]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_starts_the_audit_with_options_it_takes(bundle, repository, name):
    audit, _ = tasks(bundle, name)
    assert (repository / "resources" / audit["spark_python_task"]["python_file"]).samefile(
        repository / "deploy/databricks/audit.py"
    )
    folder, *argv = arguments(bundle, name, audit)
    assert folder == "/Volumes/main/kafka_transactions/reports/kafka/2026-11-21"
    given = options.parse(options.AUDIT, "", argv)
    assert given.input == ["/Volumes/main/kafka_transactions/captures/kafka"]
    assert (given.schema, given.cluster, given.mode) == ("main.kafka_transactions", "kafka", "incremental")
    assert (given.fail_on, given.keep_days) == ({"hanging", "stuck"}, 400)
    assert given.take_over == (bundle["resources"]["jobs"][name]["max_concurrent_runs"] == 1)


@pytest.mark.parametrize("name", JOBS)
def test_a_failure_is_retried_and_what_was_found_is_not(bundle, repository, name):
    audit, alert = tasks(bundle, name)
    assert (repository / "resources" / alert["spark_python_task"]["python_file"]).samefile(
        repository / "deploy/notify.py"
    )
    assert arguments(bundle, name, alert) == ["fail", f"{arguments(bundle, name, audit)[0]}/summary.json"]
    assert alert["depends_on"] == [{"task_key": "audit"}]
    assert (audit["max_retries"], alert["max_retries"]) == (2, 0)
    serverless = [task.get("disable_auto_optimization", False) for task in (audit, alert) if "environment_key" in task]
    assert all(serverless), "serverless compute retries on its own"


@pytest.mark.parametrize("name", JOBS)
def test_the_mail_tells_a_failure_from_what_was_found(bundle, name):
    audit, alert = tasks(bundle, name)
    assert audit["email_notifications"] == {"on_failure": ["${var.notify_failed}"]}
    assert alert["email_notifications"] == {"on_failure": ["${var.notify}"]}
    assert audit["notification_settings"] == {"alert_on_last_attempt": True}
    assert "email_notifications" not in bundle["resources"]["jobs"][name], "a mail of the job tells neither"


def _filled(bundle: dict[str, Any], text: str) -> str:
    """A text of the bundle as it is deployed to the catalog `main`."""

    def value(found: re.Match[str]) -> str:
        kind, *names = found[1].split(".")
        if kind == "var":
            return str({"catalog": "main"}.get(names[0]) or bundle["variables"][names[0]]["default"])
        resource: Any = bundle["resources"]
        for name in names:
            resource = resource[name]
        return _filled(bundle, resource)

    return re.sub(r"\$\{([^}]+)\}", value, text)


def test_each_job_has_the_compute_it_names_and_the_wheel(bundle, repository):
    serverless, classic = (bundle["resources"]["jobs"][name] for name in ("nightly_serverless", "nightly_classic"))
    (environment,), (cluster,) = serverless["environments"], classic["job_clusters"]
    assert {task["environment_key"] for task in serverless["tasks"]} == {environment["environment_key"]}
    assert {task["job_cluster_key"] for task in classic["tasks"]} == {cluster["job_cluster_key"]}
    needs = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]["audit"]
    assert environment["spec"]["dependencies"] == ["../dist/*.whl", *needs], "the extra audit, and no Spark"
    assert classic["tasks"][0]["libraries"] == [
        {"whl": "../dist/*.whl"},
        *({"pypi": {"package": need}} for need in needs),
    ]
    assert "--wheel-dir dist" in bundle["artifacts"]["txnlib"]["build"]
    assert [job["schedule"]["pause_status"] for job in (serverless, classic)] == ["UNPAUSED", "PAUSED"], (
        "one of them a night"
    )
