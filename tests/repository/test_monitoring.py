"""Promise OBS-6: the alarms of docs/operations/monitoring fire on a planted series, and stay quiet on a steady one."""

from __future__ import annotations

import json
import operator
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from moto import mock_aws

from airflow_bookmarks.core.health.verdict import HealthState

FOLDER = Path(__file__).parents[2] / "docs" / "operations" / "monitoring"
PAGE = FOLDER.parent / "observability.md"
PROMTOOL = shutil.which("promtool")
MINUTES = 60  # of each series

Series = Sequence[float | None]  # a value for each minute, or period; None: nothing was sent
Planted = dict[str, Series]  # by the name of the metric, without `bookmark.`


def steady(value: float) -> Series:
    return [value] * MINUTES


def planted(before: float, after: float) -> Series:
    """Return a series that changes in the middle."""
    return [before] * (MINUTES // 2) + [after] * (MINUTES // 2)


def emitted() -> set[str]:
    """Return the names that the documentation lists, which tests/airflow/operators/test_report.py holds to the code."""
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `bookmark.")]
    names = {name for row in rows for name in re.findall(r"`(bookmark\.[^`]+)`", row)}
    states = {state.value.lower().replace(" ", "_") for state in HealthState} | {"damaged"}
    return {name.replace("<state>", state) for name in names for state in states}


# Each alarm has the same meaning in both systems: its name there, what makes it fire, and what is as usual.
CASES: list[tuple[str, str, Planted, Planted]] = [
    ("BookmarkJobUnhealthy", "Unhealthy", {"health": planted(9, 1)}, {"health": steady(9)}),
    ("BookmarkZeroRecords", "ZeroRecords", {"last.no_rows": planted(0, 1)}, {"last.no_rows": steady(0)}),
    ("BookmarkSpike", "Spike", {"last.read_ratio": planted(1, 12)}, {"last.read_ratio": steady(1.2)}),
    (
        "BookmarkSlow",
        "Slow",
        {"last.seconds_ratio": planted(1, 4), "last.seconds": planted(900, 3600)},
        {"last.seconds_ratio": steady(1.1), "last.seconds": steady(3600)},
    ),
    ("BookmarkLag", "Lag", {"lag_seconds": planted(0, 100_000)}, {"lag_seconds": steady(3600)}),
    (
        "BookmarkPartitionsFailed",
        "PartitionsFailed",
        {"partitions_failed": planted(0, 2)},
        {"partitions_failed": steady(0)},
    ),
]
QUICK = {"last.seconds_ratio": planted(1, 9), "last.seconds": planted(2, 18)}  # slow, as a ratio, and still quick
by_name = pytest.mark.parametrize(("alert", "alarm", "fires", "quiet"), CASES, ids=[case[1] for case in CASES])


# ---- Prometheus

COMPARED = re.compile(r"(\w+) (==|<|>) (\d+)")
OPERATORS: dict[str, Callable[[float, float], bool]] = {"==": operator.eq, "<": operator.lt, ">": operator.gt}


def rules() -> dict[str, dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "prometheus-rules.yaml").read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def prometheus_name(metric: str) -> str:
    return f"airflow_bookmark_{metric.replace('.', '_')}"


def fires_in_prometheus(rule: Mapping[str, Any], series: Planted) -> bool:
    """Evaluate a rule at the end of series of one value a minute. It is a comparison, or several joined by `and`."""
    found = {prometheus_name(name): values for name, values in series.items()}
    terms = [COMPARED.fullmatch(term) for term in rule["expr"].split(" and ")]
    held = [
        all(term is not None and _holds(term, found[term[1]][minute]) for term in terms) for minute in range(MINUTES)
    ]
    waits = int(rule.get("for", "0m").removesuffix("m"))
    return all(held[-1 - waits :])


def _holds(term: re.Match[str], value: float | None) -> bool:
    return value is not None and OPERATORS[term[2]](value, float(term[3]))


@by_name
def test_rule_fires_on_a_planted_series_and_not_on_a_steady_one(
    alert: str, alarm: str, fires: Planted, quiet: Planted
) -> None:
    rule = rules()[alert]
    assert all(COMPARED.fullmatch(term) for term in rule["expr"].split(" and "))  # else this can't evaluate it

    assert fires_in_prometheus(rule, fires)
    assert not fires_in_prometheus(rule, quiet)


def test_rule_for_slow_runs_leaves_quick_ones_alone() -> None:
    assert not fires_in_prometheus(rules()["BookmarkSlow"], QUICK)


def test_every_rule_has_a_case() -> None:
    assert {*rules()} == {case[0] for case in CASES}


@pytest.mark.skipif(
    PROMTOOL is None,
    reason="promtool is not on PATH (go get -tool github.com/prometheus/prometheus/cmd/promtool makes it)",
)
def test_promtool_sees_each_rule_fire_and_stay_quiet(tmp_path: Path) -> None:
    cases = [(alert, fires, True) for alert, _, fires, _ in CASES]
    cases += [(alert, quiet, False) for alert, _, _, quiet in CASES] + [("BookmarkSlow", QUICK, False)]
    tests = [_promtool_test(alert, series, fires) for alert, series, fires in cases]
    script = {"rule_files": [str(FOLDER / "prometheus-rules.yaml")], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(script))

    done = subprocess.run([str(PROMTOOL), "test", "rules", "tests.yaml"], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def _promtool_test(alert: str, series: Planted, fires: bool) -> dict[str, Any]:
    labels = {"job": "flights.clean", "namespace": "prod"}
    text = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    given = [
        {"series": f"{prometheus_name(name)}{{{text}}}", "values": " ".join(map(str, values))}
        for name, values in series.items()
    ]
    rule = rules()[alert]
    # Of `and`, the value is that of the left side; promtool compares what the summary becomes.
    value = next(values for name, values in series.items() if prometheus_name(name) in rule["expr"].split()[0])[-1]
    summary = rule["annotations"]["summary"].replace("{{ $labels.job }}", labels["job"])
    summary = summary.replace("{{ $value }}", str(value)).replace("{{ $value | humanizeDuration }}", "1d 3h 46m 40s")
    expected = {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": {"summary": summary}}
    test = {"eval_time": f"{MINUTES - 1}m", "alertname": alert, "exp_alerts": [expected] if fires else []}
    return {"interval": "1m", "input_series": given, "alert_rule_test": [test]}


# ---- CloudWatch


class _Template(yaml.SafeLoader):
    """Reads the short forms of CloudFormation's functions as (name, argument)."""


def _function(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> tuple[str, Any]:
    if isinstance(node, yaml.SequenceNode):
        return name, loader.construct_sequence(node, deep=True)
    assert isinstance(node, yaml.ScalarNode)
    return name, loader.construct_scalar(node)


_Template.add_multi_constructor("!", _function)


def resources(job: str = "") -> dict[str, Any]:
    """Return the properties of each resource, as CloudFormation makes them with these parameters."""
    template = yaml.load((FOLDER / "cloudwatch.yaml").read_text(), Loader=_Template)  # noqa: S506 (a SafeLoader)
    values = {name: each["Default"] for name, each in template["Parameters"].items() if "Default" in each}
    values |= {"Namespace": "prod", "Job": job, "AlarmTopic": TOPIC}
    values |= {"AWS::Region": REGION, "AWS::StackName": "bookmarks"}

    def made(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: made(each) for key, each in value.items()}
        if isinstance(value, list):
            return [made(each) for each in value]
        if not isinstance(value, tuple):
            return value
        name, argument = value
        if name == "Ref":
            return values[argument]
        if name == "If":
            assert argument[0] == "HasJob"
            return made(argument[1 if job else 2])
        assert name == "Sub"
        return re.sub(r"\$\{([\w:]+)\}", lambda found: str(values[found[1]]), argument)

    return {name: made(each["Properties"]) for name, each in template["Resources"].items()}


REGION, TOPIC = "eu-west-1", "arn:aws:sns:eu-west-1:123456789012:alarms"
COMPARISONS = {
    "LessThanThreshold": operator.lt,
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
}


def alarms(job: str = "") -> dict[str, Any]:
    return {name: made for name, made in resources(job).items() if name != "Dashboard"}


def state_after(alarm: Mapping[str, Any], values: Series, before: str = "OK") -> str:
    """Return the state that CloudWatch gives an alarm by the values of its last periods, oldest first.

    It looks a few periods further back than it evaluates, and takes the newest values that are there. Only where these
    are too few, it goes by what the alarm says of missing ones. M of N of them have to breach.
    """
    count, needed = alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]
    there = [value for value in values[-(count + 2) :] if value is not None][-count:]
    breaches = COMPARISONS[alarm["ComparisonOperator"]]
    breaching = sum(breaches(value, float(alarm["Threshold"])) for value in there)
    missing, treatment = count - len(there), alarm["TreatMissingData"]
    if treatment == "breaching":
        breaching += missing
    elif treatment == "ignore" and missing and breaching < needed <= breaching + missing:
        return before
    return "ALARM" if breaching >= needed else "OK"


def values_of(alarm: Mapping[str, Any], series: Planted) -> Series:
    """Return the values that an alarm goes by: those of its metric, or of its expression over two metrics."""
    if "MetricName" in alarm:
        return series[alarm["MetricName"].removeprefix("airflow.bookmark.")]
    *stats, math = alarm["Metrics"]
    names = {each["Id"]: each["MetricStat"]["Metric"]["MetricName"] for each in stats}
    found = re.fullmatch(r"IF\((\w+) > (\d+) AND (\w+) > (\d+), 1, 0\)", math["Expression"])
    assert found is not None, math["Expression"]
    one, two = (series[names[found[number]].removeprefix("airflow.bookmark.")] for number in (1, 3))
    return [
        None if a is None or b is None else int(a > float(found[2]) and b > float(found[4]))
        for a, b in zip(one, two, strict=True)
    ]


@by_name
def test_alarm_fires_on_a_planted_series_and_not_on_a_steady_one(
    alert: str, alarm: str, fires: Planted, quiet: Planted
) -> None:
    made = alarms()[alarm]

    assert state_after(made, values_of(made, fires)) == "ALARM"
    assert state_after(made, values_of(made, quiet)) == "OK"


def test_alarm_for_slow_runs_leaves_quick_ones_alone() -> None:
    made = alarms()["Slow"]

    assert state_after(made, values_of(made, QUICK)) == "OK"


def test_every_alarm_has_a_case() -> None:
    assert {*alarms()} == {case[1] for case in CASES}


@pytest.mark.parametrize("alarm", ["ZeroRecords", "Spike", "Slow", "PartitionsFailed"])
def test_alarm_of_a_run_stays_as_it_is_until_the_next_run(alarm: str) -> None:
    silence: Series = [None] * 10

    assert [state_after(alarms()[alarm], silence, before) for before in ("ALARM", "OK")] == ["ALARM", "OK"]


def test_watch_that_is_silent_is_an_alarm_and_one_look_that_comes_late_is_none() -> None:
    made = alarms()["Unhealthy"]

    assert state_after(made, [9, 9, 9, None, None, None, None, None]) == "ALARM"
    assert state_after(made, [9, 9, None, 9, None]) == "OK"
    assert state_after(made, [9, 9, 1, 9, 9]) == "OK"


def test_alarm_is_about_one_job_or_about_all_of_them() -> None:
    namespace = {"Name": "namespace", "Value": "prod"}

    assert alarms()["Lag"]["Dimensions"] == [namespace]
    assert alarms("flights.clean")["Lag"]["Dimensions"] == [namespace, {"Name": "job", "Value": "flights.clean"}]


@pytest.mark.parametrize("job", ["", "flights.clean"])
def test_emulator_accepts_the_alarms_and_the_dashboard(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        client = boto3.client("cloudwatch", region_name=REGION)
        dashboard = resources(job)["Dashboard"]
        for name, made in alarms(job).items():
            client.put_metric_alarm(AlarmName=name, **made)  # botocore holds the arguments to the API
        client.put_dashboard(**dashboard)

        assert {each["AlarmName"] for each in client.describe_alarms()["MetricAlarms"]} == {*alarms()}
        widgets = json.loads(client.get_dashboard(DashboardName="airflow-bookmarks-bookmarks")["DashboardBody"])
        assert all(each["properties"]["region"] == REGION for each in widgets["widgets"])


@pytest.mark.seldom
def test_emulator_accepts_the_template_as_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    given = [{"ParameterKey": "Namespace", "ParameterValue": "prod"}]
    given += [{"ParameterKey": "AlarmTopic", "ParameterValue": TOPIC}]
    with mock_aws():
        client = boto3.client("cloudformation", region_name=REGION)
        body = (FOLDER / "cloudwatch.yaml").read_text()
        client.create_stack(StackName="bookmarks", TemplateBody=body, Parameters=given)

        (stack,) = client.describe_stacks()["Stacks"]
        assert stack["StackStatus"] == "CREATE_COMPLETE"


@pytest.mark.seldom
def test_template_has_no_error_by_the_linter_of_cloudformation() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("cfn-lint")), str(FOLDER / "cloudwatch.yaml")],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout


# ---- only what is sent


def test_alarms_and_dashboards_use_only_metrics_that_are_sent() -> None:
    names = emitted()
    in_prometheus = {name: prometheus_name(name.removeprefix("bookmark.")) for name in names}
    for file in ("prometheus-rules.yaml", "grafana.json"):
        used = set(re.findall(r"airflow_bookmark_\w+", (FOLDER / file).read_text()))
        assert used
        assert used <= set(in_prometheus.values()), file
    for file in ("cloudwatch.yaml", "otel-cloudwatch.yaml"):
        used = set(re.findall(r"airflow\.(bookmark\.\w[\w.]*)", (FOLDER / file).read_text()))
        assert used
        assert used <= names, file


def test_names_of_glue_on_the_dashboard_are_those_that_the_collector_makes() -> None:
    collector = yaml.safe_load((FOLDER / "otel-cloudwatch.yaml").read_text())
    made = {each["new_name"] for each in collector["processors"]["metricstransform/glue"]["transforms"]}
    shown = set(re.findall(r"glue\.[\w.]+", (FOLDER / "cloudwatch.yaml").read_text()))

    assert shown
    assert shown <= made


def test_collector_gives_each_metric_the_dimensions_that_the_alarms_go_by() -> None:
    collector = yaml.safe_load((FOLDER / "otel-cloudwatch.yaml").read_text())
    (declared,) = collector["exporters"]["awsemf"]["metric_declarations"]
    asked = [[each["Name"] for each in alarms(job)["Lag"]["Dimensions"]] for job in ("flights.clean", "")]

    assert declared["dimensions"] == asked
    assert collector["exporters"]["awsemf"]["namespace"] == alarms()["Lag"]["Namespace"]


def test_dashboard_of_grafana_has_a_query_in_each_panel_and_no_panel_twice() -> None:
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])
    assert all(panel["targets"] for panel in panels)
