"""The Databricks bundle, as far as it can be checked without Databricks.

Held against a part of the bundle's JSON schema (databricks/cli, bundle/schema/jsonschema.json), picked by hand: its licence
allows it to be used with Databricks only, so it is not here.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from jobs import options

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
    "task_key",
    task_key=TEXT,
    environment_key=TEXT,
    job_cluster_key=TEXT,
    max_retries=WHOLE,
    python_wheel_task=thing("package_name", "entry_point", package_name=TEXT, entry_point=TEXT, parameters=many(TEXT)),
    libraries=many(thing("whl", whl=TEXT)),
)
CLUSTER = thing(
    "spark_version",
    spark_version=TEXT,
    node_type_id=TEXT,
    num_workers=WHOLE,
    data_security_mode={"enum": ["SINGLE_USER", "USER_ISOLATION"]},
)
JOB = thing(
    "name",
    "tasks",
    name=TEXT,
    description=TEXT,
    schedule=thing("quartz_cron_expression", "timezone_id", quartz_cron_expression=TEXT, timezone_id=TEXT, pause_status=PAUSE),
    parameters=many(thing("name", "default", name=TEXT, default=TEXT)),
    max_concurrent_runs=WHOLE,
    queue=thing("enabled", enabled={"type": "boolean"}),
    email_notifications=thing(on_failure=many(TEXT)),
    tasks=many(TASK),
    environments=many(
        thing("environment_key", environment_key=TEXT, spec=thing(environment_version=TEXT, dependencies=many(TEXT)))
    ),
    job_clusters=many(thing("job_cluster_key", "new_cluster", job_cluster_key=TEXT, new_cluster=CLUSTER)),
)
SCHEMA = thing("catalog_name", "name", catalog_name=TEXT, name=TEXT, comment=TEXT)
VOLUME = thing(
    "catalog_name",
    "name",
    "schema_name",
    catalog_name=TEXT,
    schema_name=TEXT,
    name=TEXT,
    volume_type={"enum": ["MANAGED", "EXTERNAL"]},
    comment=TEXT,
)
DASHBOARD = thing(display_name=TEXT, file_path=TEXT, warehouse_id=TEXT, dataset_catalog=TEXT, dataset_schema=TEXT)
BUNDLE = thing(
    bundle=thing("name", name=TEXT),
    include=many(TEXT),
    artifacts=named(thing("type", type={"const": "whl"}, build=TEXT)),
    sync=thing(exclude=many(TEXT)),
    variables=named(thing(description=TEXT, default=TEXT)),
    targets=named(
        thing(mode={"enum": ["development", "production"]}, default={"type": "boolean"}, workspace=thing(root_path=TEXT))
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


@pytest.mark.parametrize("name", ["nightly_serverless", "nightly_classic"])
def test_a_job_starts_the_audit_with_options_it_takes(bundle, repository, name):
    job = bundle["resources"]["jobs"][name]
    (task,) = job["tasks"]
    scripts = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts[task["python_wheel_task"]["entry_point"]] == "jobs.audit:program"
    values = {parameter["name"]: parameter["default"] for parameter in job["parameters"]}
    values = {key: _filled(bundle, value) for key, value in values.items()}
    argv = [
        re.sub(r"\{\{job\.parameters\.(\w+)\}\}", lambda found: values[found[1]], word)
        for word in task["python_wheel_task"]["parameters"]
    ]
    given = options.parse(options.AUDIT, "", argv)
    assert given.input == ["/Volumes/main/kafka_transactions/captures/kafka"]
    assert (given.schema, given.cluster, given.mode) == ("main.kafka_transactions", "kafka", "incremental")
    assert (given.fail_on, given.keep_days) == ({"hanging", "stuck"}, 400)


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


def test_each_job_has_the_compute_it_names_and_the_wheel(bundle):
    serverless, classic = (bundle["resources"]["jobs"][name] for name in ("nightly_serverless", "nightly_classic"))
    (environment,), (cluster,) = serverless["environments"], classic["job_clusters"]
    assert serverless["tasks"][0]["environment_key"] == environment["environment_key"]
    assert classic["tasks"][0]["job_cluster_key"] == cluster["job_cluster_key"]
    assert environment["spec"]["dependencies"] == ["../dist/*.whl"] == [classic["tasks"][0]["libraries"][0]["whl"]]
    assert "--wheel-dir dist" in bundle["artifacts"]["txnlib"]["build"]
    assert [job["schedule"]["pause_status"] for job in (serverless, classic)] == ["UNPAUSED", "PAUSED"], "one of them a night"
