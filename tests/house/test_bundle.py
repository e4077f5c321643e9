"""The Databricks bundle, as far as it can be checked without Databricks."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.delta_tables import session_views
from txnlib.jobs import options

pytestmark = pytest.mark.shares("notebooks")

#: What a filter of the dashboard asks for beside its values, so that Databricks knows which are left.
ASSOCIATIVITY = "COUNT_IF(`associative_filter_predicate_group`)"


@pytest.fixture(scope="module")
def jobs(repository) -> dict[str, Any]:
    return yaml.safe_load((repository / "resources" / "nightly.yml").read_text())["resources"]["jobs"]


def test_every_variable_is_declared_and_used(repository):
    files = [repository / "databricks.yml", *sorted((repository / "resources").glob("*.yml"))]
    declared = yaml.safe_load(files[0].read_text())["variables"].keys()
    used = {name for file in files for name in re.findall(r"\$\{var\.(\w+)\}", file.read_text())}
    assert (len(files), used) == (4, declared)
    assert all(yaml.safe_load(file.read_text())["resources"] for file in files[1:])


def test_each_job_starts_programs_that_exist_with_options_that_they_take(repository, jobs):
    values = {"fail_on": "hanging", "keep_days": "400", "schema": "main.audits"}
    for job in jobs.values():
        audit, alert = (task["spark_python_task"] for task in job["tasks"])
        for task, program in ((audit, "deploy/databricks/audit.py"), (alert, "deploy/notify.py")):
            assert (repository / "resources" / task["python_file"]).samefile(repository / program)
        _, *given = (
            re.sub(r"\{\{job\.(?:\w+\.)?(\w+)\}\}", lambda found: values.get(found[1], found[1]), word)
            for word in audit["parameters"]
        )
        assert options.parse(options.AUDIT, "", given).fail_on == {"hanging"}
        assert alert["parameters"][0] == "fail"


def test_each_job_has_what_the_extra_brings_and_no_spark(repository, jobs):
    needs = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]["audit"]
    (environment,) = jobs["nightly_serverless"]["environments"]
    assert environment["spec"]["dependencies"] == ["../dist/*.whl", *needs]
    libraries = jobs["nightly_classic"]["tasks"][0]["libraries"]
    assert libraries == [{"whl": "../dist/*.whl"}, *({"pypi": {"package": need}} for need in needs)]


def test_the_dashboard_asks_for_tables_and_columns_that_there_are(spark, audited_in_a_notebook, repository):
    board = json.loads((repository / "resources" / "transactions.lvdash.json").read_text())
    datasets = {each["name"]: "".join(each["queryLines"]) for each in board["datasets"]}
    queries = [
        query["query"] for page in board["pages"] for place in page["layout"] for query in place["widget"]["queries"]
    ]
    with session_views(spark, Path(audited_in_a_notebook["found"].location)):
        for query in queries:
            fields = [field["expression"] for field in query["fields"] if field["expression"] != ASSOCIATIVITY]
            plain = [field for field in fields if field.startswith("`")]
            grouped = f" GROUP BY {', '.join(plain)}" if plain and not query["disaggregated"] else ""
            spark.sql(f"SELECT {', '.join(fields)} FROM ({datasets[query['datasetName']]}){grouped}").schema  # noqa: B018
    assert len(queries) > 10
