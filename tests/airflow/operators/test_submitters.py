"""Promises AIR-3, AIR-6, AIR-7 and SEC-1 for everything that submits Spark: one set of promises, one class for each.

The providers' own hooks make the requests; a stand-in takes them on the loopback and starts the driver.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import yaml
from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator
from airflow.sdk import DAG, BaseOperator
from packaging.version import Version

from airflow_bookmarks.airflow_compat import AirflowFailException, TaskDeferred, deletes_after_deferral
from airflow_bookmarks.core.errors import FencedError, NotCommittedError, OptionError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.operators.databricks import BookmarkDatabricksSubmitRunOperator
from airflow_bookmarks.operators.emr import BookmarkEmrAddStepsOperator, BookmarkEmrServerlessStartJobOperator
from airflow_bookmarks.operators.glue import BookmarkGlueJobOperator
from airflow_bookmarks.operators.kubernetes import BookmarkSparkKubernetesOperator
from airflow_bookmarks.operators.livy import BookmarkLivyOperator
from airflow_bookmarks.operators.task.remote_submission import RemoteSubmission
from airflow_bookmarks.operators.task.submit_arguments import SubmitArguments
from airflow_bookmarks.store.bookmark_store import open_store
from airflow_bookmarks.triggers.submission import SubmissionTrigger
from airflow_bookmarks.version import __version__
from tests.airflow import stand_in
from tests.airflow.compat import AirflowException, DagSerialization, TaskDeferralTimeout
from tests.airflow.conftest import Player, World, connect
from tests.airflow.operators.test_operator import DRIVER, SECRET
from tests.airflow.stand_in import Service
from tests.lifecycle.shop import Shop

JOB = "shop.copy"
USER = {"spark.x": '{"a":1}'}


@pytest.fixture
def remote(world: World, monkeypatch: pytest.MonkeyPatch, moto_url: str) -> World:
    """Put the state where a driver elsewhere reaches it; the worker has credentials that the driver has not."""
    connection = {"conn_type": "aws", "login": "AKIAEXAMPLE", "password": SECRET}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_BOOKMARKS", json.dumps(connection))
    uri = f"dynamodb://bookmarks-{uuid.uuid4().hex}?region=eu-west-1&endpoint={moto_url}&namespace=test"
    connect(monkeypatch, store=uri, aws_conn_id="aws_bookmarks")
    store = open_store(uri)
    store.init()
    return World(world.folder, store, Shop(world.folder, store), uri)


def told(attempt: int = 1, first: int = 1, retries: int = 0, map_index: int = -1) -> Any:
    """Return what Airflow hands to a task, as far as the operators look at it."""
    ti = SimpleNamespace(
        dag_id="shop",
        task_id="copy",
        run_id="manual__1",
        map_index=map_index,
        try_number=attempt,
        max_tries=first + retries - 1,
        start_date=datetime.now(tz=UTC),
        stats_tags={},
        xcom_push=lambda **_: None,
        xcom_pull=lambda **_: None,
    )
    dag = SimpleNamespace(parent_dag=None)
    date = datetime(2026, 5, 3, tzinfo=UTC)
    return {"ti": ti, "task_instance": ti, "run_id": ti.run_id, "dag": dag, "logical_date": date}


def identity(attempt: int = 1) -> RunIdentity:
    return RunIdentity("shop/manual__1/copy", attempt)


class Submitter:
    """One submitter: how it is made, and what stands in for its service."""

    operator: type[RemoteSubmission]
    service: type[Service]
    runtime_uri: ClassVar[str] = "s3://code/airflow_bookmarks.zip"
    not_waiting: ClassVar[dict[str, Any]] = {"wait_for_completion": False, "deferrable": False}
    for_glue: ClassVar[dict[str, Any]] = {}
    end_of_the_stopped: ClassVar[type[Exception]] = AirflowException
    end_of_the_failed: ClassVar[tuple[type[Exception], ...]] = (AirflowException,)

    def connect(self, patch: pytest.MonkeyPatch, service: Service, world: World) -> None:
        """Make the connection that leads to the service."""
        extra = {"endpoint_url": service.url, "region_name": "eu-west-1"}
        value = {"conn_type": "aws", "login": "AKIASERVICE", "password": "another-secret", "extra": extra}
        patch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(value))

    def arguments(self, conf: dict[str, str], world: World) -> dict[str, Any]:
        """Return the arguments of the provider's operator, with the user's conf among them."""
        raise NotImplementedError

    def event(self, *, is_success: bool) -> dict[str, Any]:
        """Return what the provider's trigger fires."""
        raise NotImplementedError


class SubmitterPromises(Submitter):
    """What holds whatever submits. A class for each submitter inherits it."""

    why_not_deferred: ClassVar[str] = ""

    @pytest.fixture
    def service_at_work(self, remote: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
        with self.service().serving() as service:
            self.connect(monkeypatch, service, remote)
            yield service

    def task(self, world: World, conf: dict[str, str] | None = None, **given: Any) -> RemoteSubmission:
        arguments = {"runtime_uri": self.runtime_uri, **self.arguments(conf or {}, world), **given}
        return self.operator(**{"task_id": "copy", **arguments})

    def drive(self, world: World, attempt: int = 1) -> stand_in.Driver:
        """Return a driver in this process that makes one whole run."""

        def work(_: dict[str, str]) -> int:
            run = ActiveRun.begin(world.store, JOB, identity(attempt), world.shop.environment)
            world.shop.copy(run)
            run.commit()
            return 0

        return work

    # ---- what travels

    def test_driver_elsewhere_gets_settings_and_runtime_and_success_means_published(
        self, remote: World, service_at_work: Service
    ) -> None:
        remote.shop.put("a.txt", "a1", "a2")
        script = DRIVER.format(root=str(remote.folder), commits=True, code=0, fault="")
        service_at_work.driver = stand_in.process(script)

        summary = self.task(remote, USER).execute(told())

        assert (summary["run_number"], summary["is_published"]) == ("1", True)
        assert remote.shop.target_lines(JOB) == {"a1": 1, "a2": 1}
        (asked,) = service_at_work.started
        conf = service_at_work.conf(asked)
        settings = Settings.from_conf(conf)
        assert (settings.job, settings.store, settings.option) == (JOB, remote.store_uri, "enable")
        assert (settings.run_id, settings.attempt, settings.version) == (identity().run_id, "1", __version__)
        assert settings.identity("").logical_date == "2026-05-03T00:00:00.000000Z"
        assert USER.items() <= conf.items()
        assert service_at_work.runtimes(asked) == [self.runtime_uri]

    def test_no_credential_is_in_any_request(self, remote: World, service_at_work: Service) -> None:
        service_at_work.driver = self.drive(remote)

        self.task(remote).execute(told())

        assert service_at_work.asked
        assert not [asked for asked in service_at_work.asked if SECRET in asked.text or "AKIAEXAMPLE" in asked.text]

    def test_runtime_of_this_worker_is_refused_when_the_file_is_read(self, remote: World) -> None:
        with pytest.raises(OptionError, match="can't read the runtime from this worker"):
            self.task(remote, runtime_uri=None)
        with pytest.raises(OptionError, match="expected a URI that ends in"):
            self.task(remote, runtime_uri="s3://code/airflow_bookmarks.jar")
        with pytest.raises(OptionError, match="Leave one out"):
            self.task(remote, ship_runtime=False)

    def test_runtime_in_the_image_is_not_sent(self, remote: World, service_at_work: Service) -> None:
        service_at_work.driver = self.drive(remote)

        self.task(remote, ship_runtime=False, runtime_uri=None).execute(told())

        assert service_at_work.runtimes(service_at_work.started[0]) == []

    def test_script_for_glue_gets_the_arguments_of_its_job(self, remote: World, service_at_work: Service) -> None:
        service_at_work.driver = self.drive(remote)

        self.task(remote, glue=True, **self.for_glue).execute(told())

        (asked,) = service_at_work.started
        names = ["--JOB_NAME", JOB, "--JOB_RUN_ID", identity().run_id, "--job-bookmark-option", "job-bookmark-enable"]
        assert service_at_work.script_arguments(asked)[-6:] == names
        assert ("spark.hadoop.fs.s3.impl" in service_at_work.conf(asked)) is not self.operator.has_s3_of_its_own

    def test_window_and_upstream_travel_and_no_commit_is_asked_for(
        self, remote: World, service_at_work: Service
    ) -> None:
        window: dict[str, Any] = {
            "bookmark_option": "pause",
            "bookmark_from": "1",
            "bookmark_to": 3,
            "bookmark_upstream": ["a", "b"],
        }

        summary = self.task(remote, **window).execute(told())

        settings = Settings.from_conf(service_at_work.conf(service_at_work.started[0]))
        assert (settings.option, settings.from_run, settings.to_run) == ("pause", "1", "3")
        assert settings.upstreams() == ("a", "b")
        assert (summary["option"], summary["run_number"]) == ("pause", None)

    def test_setting_in_the_users_conf_is_refused_when_the_file_is_read(self, remote: World) -> None:
        with pytest.raises(OptionError, match="which the operator sets itself"):
            self.task(remote, {"spark.bookmarks.option": "disable"})

    def test_resources_follow_the_input_and_the_users_conf_comes_first(
        self, remote: World, service_at_work: Service
    ) -> None:
        service_at_work.driver = self.drive(remote)
        resources = {"spark.executor.instances": 3, "spark.x": "theirs"}

        self.task(remote, USER, conf_for=lambda _: resources).execute(told())

        conf = service_at_work.conf(service_at_work.started[0])
        assert (conf["spark.executor.instances"], conf["spark.x"]) == ("3", USER["spark.x"])

    def test_file_of_state_on_this_machine_is_refused(
        self, world: World, remote: World, service_at_work: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connect(monkeypatch, store=world.store_uri)

        with pytest.raises(AirflowFailException, match="on another machine"):
            self.task(remote).execute(told())
        assert service_at_work.started == []

    def test_end_that_is_not_waited_for_is_refused(self, remote: World) -> None:
        with pytest.raises(OptionError, match="would end before Spark does"):
            self.task(remote, **self.not_waiting)

    # ---- tries

    def test_settings_of_one_try_do_not_stay_on_the_operator(self, remote: World, service_at_work: Service) -> None:
        task = self.task(remote, USER, retries=1)
        # A name that is not given the provider makes up, and keeps.
        before = {name: repr(getattr(task, name)) for name in task.template_fields if name != "name"}

        for attempt in (1, 2):
            service_at_work.driver = self.drive(remote, attempt)
            task.execute(told(attempt, first=attempt, retries=1))

        assert {name: repr(getattr(task, name)) for name in before} == before
        attempts = [Settings.from_conf(service_at_work.conf(asked)).attempt for asked in service_at_work.started]
        assert attempts == ["1", "2"]

    def test_retry_of_what_was_committed_submits_nothing(self, remote: World, service_at_work: Service) -> None:
        remote.shop.put("a.txt", "a")
        self.drive(remote)({})

        summary = self.task(remote, retries=1).execute(told(attempt=2, retries=1))

        assert (summary["run_number"], service_at_work.started) == ("1", [])

    def test_driver_that_fails_fails_the_task_and_says_where_the_bookmark_stands(
        self, remote: World, service_at_work: Service
    ) -> None:
        service_at_work.driver = lambda _: 1

        with pytest.raises(AirflowException) as raised:
            self.task(remote).execute(told())

        assert any("nothing was committed" in note for note in raised.value.__notes__)

    def test_driver_that_never_commits_fails_the_task(self, remote: World, service_at_work: Service) -> None:
        with pytest.raises(NotCommittedError):
            self.task(remote).execute(told())

    def test_kill_stops_spark_and_fences_the_try(self, remote: World, service_at_work: Service) -> None:
        remote.shop.put("a.txt", "a")
        task, orphans = self.task(remote), []

        def kill() -> None:
            orphans.append(ActiveRun.begin(remote.store, JOB, identity(), remote.shop.environment))
            remote.shop.copy(orphans[0])
            task.on_kill()

        service_at_work.on_question = kill
        with pytest.raises(self.end_of_the_stopped):
            task.execute(told())

        assert service_at_work.was_stopped
        with pytest.raises(FencedError):
            orphans[0].commit()
        assert remote.shop.target_lines(JOB) == {}

    # ---- deferred

    def defer(self, world: World, service: Service) -> TaskDeferred:
        if self.why_not_deferred:
            pytest.skip(self.why_not_deferred)
        service.patience = 9
        with pytest.raises(TaskDeferred) as raised:
            self.task(world, deferrable=True).execute(told())
        service.patience = 0
        return raised.value

    def go_on(self, world: World, deferred: TaskDeferred, *, is_success: bool = True) -> dict[str, Any]:
        """Go on as Airflow does: with another object, in another process maybe."""
        task = self.task(world, deferrable=True)
        given = {**(deferred.kwargs or {}), "event": self.event(is_success=is_success)}
        return task.resume_execution(deferred.method_name, given, told())

    def test_deferred_task_finishes_the_bookmark(self, remote: World, service_at_work: Service) -> None:
        remote.shop.put("a.txt", "a")
        service_at_work.driver = self.drive(remote)
        deferred = self.defer(remote, service_at_work)
        assert len(service_at_work.started) == 1
        assert service_at_work.state == "done"

        summary = self.go_on(remote, deferred)

        assert (summary["run_number"], summary["is_published"]) == ("1", True)
        assert len(service_at_work.started) == 1

    def test_retry_that_is_handed_the_deferral_of_the_try_before_submits_anew(
        self, remote: World, service_at_work: Service
    ) -> None:
        remote.shop.put("a.txt", "a")
        deferred = self.defer(remote, service_at_work)
        service_at_work.driver = self.drive(remote, attempt=2)
        stale = {**(deferred.kwargs or {}), "event": self.event(is_success=False)}

        summary = self.task(remote, deferrable=False).resume_execution(
            deferred.method_name, stale, told(attempt=2, retries=1)
        )

        assert (summary["run_number"], summary["is_published"]) == ("1", True)
        assert len(service_at_work.started) == 2

    def test_deferred_task_whose_driver_never_commits_fails(self, remote: World, service_at_work: Service) -> None:
        deferred = self.defer(remote, service_at_work)

        with pytest.raises(NotCommittedError):
            self.go_on(remote, deferred)

    def test_deferred_task_whose_driver_fails_is_fenced(self, remote: World, service_at_work: Service) -> None:
        deferred = self.defer(remote, service_at_work)

        with pytest.raises(self.end_of_the_failed) as raised:
            self.go_on(remote, deferred, is_success=False)

        said = [str(raised.value), *getattr(raised.value, "__notes__", ())]
        assert any("nothing was committed" in text.lower() for text in said)
        with pytest.raises(TaskDeferralTimeout):
            self.task(remote, deferrable=True).resume_execution("__fail__", {"error": "Trigger timeout"}, told())
        execution = remote.store.execution(JOB, identity().run_id)
        assert execution is not None
        assert execution.killed_attempt == 1

    def test_kill_of_a_deferred_task_fences_the_try(
        self, remote: World, service_at_work: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trigger = self.defer(remote, service_at_work).trigger
        path, arguments = trigger.serialize()
        stopped = []

        async def stop(self: Any) -> None:
            stopped.append(self)

        again = SubmissionTrigger(**arguments)
        # Without the provider's own stop: those of AWS need aiobotocore, which asks for an older boto3. In Airflow 3.2
        # there is none.
        monkeypatch.setattr(type(again._inner), "on_kill", stop, raising=False)
        asyncio.run(again.on_kill())

        assert path == f"{SubmissionTrigger.__module__}.SubmissionTrigger"
        assert stopped == [again._inner]
        execution = remote.store.execution(JOB, identity().run_id)
        assert execution is not None
        assert execution.killed_attempt == 1

    # ---- as an operator

    @pytest.mark.seldom
    def test_templates_are_rendered_and_the_task_succeeds_in_a_dag(
        self, remote: World, service_at_work: Service, player: Player
    ) -> None:
        service_at_work.driver = stand_in.process(
            DRIVER.format(root=str(remote.folder), commits=True, code=0, fault="")
        )
        with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC), params={"job": "orders"}) as dag:
            self.task(remote, {"spark.y": "{{ params.job }}"}, bookmark_job="{{ params.job }}")

        played = player.play(dag)

        assert played.state == "success"
        conf = service_at_work.conf(service_at_work.started[0])
        assert (conf["spark.bookmarks.job"], conf["spark.y"]) == ("orders", "orders")
        assert played.xcom("copy")["job"] == "orders"

    def test_operator_survives_serialisation(self, remote: World) -> None:
        with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
            self.task(remote, USER, bookmark_option="{{ params.option }}", bookmark_upstream=["a", "b"])

        again: Any = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).get_task("copy")

        assert (again.bookmark_option, list(again.bookmark_upstream)) == ("{{ params.option }}", ["a", "b"])
        assert again.runtime_uri == self.runtime_uri
        assert {*self.operator.bookmark_template_fields} <= {*again.template_fields}

    def test_arguments_may_come_from_default_args(self, remote: World) -> None:
        defaults = {"bookmark_option": "pause", "runtime_uri": self.runtime_uri, "deferrable": True}

        task: Any = self.operator(task_id="copy", default_args={**self.arguments({}, remote), **defaults})

        assert (task.bookmark_option, task.runtime_uri, task.deferrable) == ("pause", self.runtime_uri, True)

    def test_misspelt_argument_is_refused(self, remote: World) -> None:
        with pytest.raises(OptionError, match="unknown argument 'bookmark_optoin'"):
            self.task(remote, bookmark_optoin="pause")

    def test_task_may_be_mapped(self, remote: World) -> None:
        arguments = {**self.arguments({}, remote), "runtime_uri": self.runtime_uri}
        with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
            self.operator.partial(task_id="copy", **arguments).expand(bookmark_job=["a", "b"])

        assert dag.get_task("copy").is_mapped


@pytest.mark.seldom
class TestLivy(SubmitterPromises):
    operator, service = BookmarkLivyOperator, stand_in.Livy
    not_waiting: ClassVar[dict[str, Any]] = {"polling_interval": 0}

    def connect(self, patch: pytest.MonkeyPatch, service: Service, world: World) -> None:
        value = {"conn_type": "livy", "host": "127.0.0.1", "port": service.port, "schema": "http"}
        patch.setenv("AIRFLOW_CONN_LIVY_DEFAULT", json.dumps(value))

    def arguments(self, conf: dict[str, str], world: World) -> dict[str, Any]:
        return {"file": "s3://code/job.py", "conf": conf, "polling_interval": 1}

    def event(self, *, is_success: bool) -> dict[str, Any]:
        return {"status": "success" if is_success else "error", "batch_id": 0, "response": "ended", "log_lines": None}

    @pytest.mark.skipif(
        Version(version("apache-airflow-providers-apache-livy")) < Version("4.6.2"),
        reason="before 4.6.2 the provider's trigger asks by POST, which Livy refuses: no deferred task succeeds",
    )
    @pytest.mark.seldom
    def test_deferred_task_waits_by_its_trigger_and_succeeds_in_a_dag(
        self, remote: World, service_at_work: Service, player: Player
    ) -> None:
        remote.shop.put("a.txt", "a")
        service_at_work.patience = 1
        service_at_work.driver = stand_in.process(
            DRIVER.format(root=str(remote.folder), commits=True, code=0, fault="")
        )
        with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
            self.task(remote, deferrable=True)

        played = player.play(dag)

        assert (played.state, played.xcom("copy")["run_number"]) == ("success", "1")
        assert len(service_at_work.started) == 1


@pytest.mark.seldom
class TestEmrOnEc2(SubmitterPromises):
    operator, service = BookmarkEmrAddStepsOperator, stand_in.Emr

    def arguments(self, conf: dict[str, str], world: World) -> dict[str, Any]:
        flags = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        spark = {"Jar": "command-runner.jar", "Args": ["spark-submit", *flags, "s3://code/job.py", "--conf", "mine"]}
        copy = {"Jar": "command-runner.jar", "Args": ["s3-dist-cp", "--src", "a", "--dest", "b"]}
        steps = [{"Name": str(i), "HadoopJarStep": step} for i, step in enumerate((copy, spark))]
        return {"job_flow_id": "j-1", "steps": steps, "waiter_delay": 1}

    def event(self, *, is_success: bool) -> dict[str, Any]:
        return {"status": "success" if is_success else "error", "value": "s-1"}

    def test_two_spark_steps_are_refused(self, remote: World) -> None:
        arguments = self.arguments({}, remote)
        with pytest.raises(OptionError, match="2 of 4 steps have 'spark-submit'"):
            self.task(remote, steps=arguments["steps"] * 2)

    def test_steps_may_come_as_text(self, remote: World, service_at_work: Service) -> None:
        service_at_work.driver = self.drive(remote)

        self.task(remote, steps=repr(self.arguments(USER, remote)["steps"])).execute(told())

        assert USER.items() <= service_at_work.conf(service_at_work.started[0]).items()


class TestEmrServerless(SubmitterPromises):
    operator, service = BookmarkEmrServerlessStartJobOperator, stand_in.EmrServerless
    # To early providers a deferred job that failed is one that ended: it is the bookmark that fails.
    end_of_the_failed: ClassVar[tuple[type[Exception], ...]] = (AirflowException, NotCommittedError)

    def arguments(self, conf: dict[str, str], world: World) -> dict[str, Any]:
        overrides = {"applicationConfiguration": [{"classification": "spark-defaults", "properties": conf}]}
        return {
            "application_id": "app",
            "execution_role_arn": "arn:aws:iam::123456789012:role/job",
            "job_driver": {"sparkSubmit": {"entryPoint": "s3://code/job.py"}},
            "configuration_overrides": overrides if conf else None,
            "waiter_delay": 1,
        }

    def event(self, *, is_success: bool) -> dict[str, Any]:
        details = {"application_id": "app", "job_id": "run"}
        # Early providers look for `job_id`, later ones for the details.
        return {"status": "success" if is_success else "error", "job_id": "run", "job_details": details}

    def test_parameters_of_the_user_stay_and_count(self, remote: World, service_at_work: Service) -> None:
        service_at_work.driver = self.drive(remote)
        text = "--conf spark.x=mine --conf 'spark.y=a b' --py-files s3://mine.zip"
        driver = {"sparkSubmit": {"entryPoint": "s3://code/job.py", "sparkSubmitParameters": text}}

        self.task(remote, job_driver=driver, conf_for=lambda _: {"spark.x": "theirs"}).execute(told())

        (asked,) = service_at_work.started
        conf = service_at_work.conf(asked)
        assert (conf["spark.x"], conf["spark.y"]) == ("mine", "a b")
        assert service_at_work.runtimes(asked) == ["s3://mine.zip", self.runtime_uri]

    def test_job_that_is_not_sparks_is_refused(self, remote: World) -> None:
        with pytest.raises(OptionError, match="no sparkSubmit"):
            self.task(remote, job_driver={"hive": {"query": "q"}})

    def test_application_that_had_to_be_started_first_gets_its_job_then(
        self, remote: World, service_at_work: Service
    ) -> None:
        service_at_work.driver = self.drive(remote)
        task = self.task(remote)

        summary = task.resume_execution("execute", {"event": {"status": "success"}}, told())

        assert (summary["run_number"], len(service_at_work.started)) == ("1", 1)


@pytest.mark.seldom
class TestGlue(SubmitterPromises):
    operator, service = BookmarkGlueJobOperator, stand_in.Glue
    # To the provider of Airflow 3.2 a job run that was stopped is one that ended well: it is the bookmark that fails.
    end_of_the_stopped: ClassVar[type[Exception]] = (
        AirflowException if hasattr(GlueJobOperator, "is_job_succeeded") else NotCommittedError
    )

    # A job run of Glue has the real awsglue.
    test_script_for_glue_gets_the_arguments_of_its_job = None  # type: ignore[assignment]

    def test_script_that_leaves_glue_is_not_for_glue(self, remote: World) -> None:
        with pytest.raises(OptionError, match="has the real awsglue"):
            self.task(remote, glue=True)

    def arguments(self, conf: dict[str, str], world: World) -> dict[str, Any]:
        text = " --conf ".join(f"{key}={value}" for key, value in conf.items())
        given = {"--conf": text} if text else {}
        return {"job_name": "clean", "script_args": {"--mine": "1", **given}, "job_poll_interval": 0.1}

    def event(self, *, is_success: bool) -> dict[str, Any]:
        return {"status": "success" if is_success else "error", "run_id": "jr_1"}

    def test_glues_own_bookmark_is_off_and_may_not_be_asked_for(self, remote: World, service_at_work: Service) -> None:
        service_at_work.driver = self.drive(remote)
        self.task(remote, script_args={"--job-bookmark-option": "job-bookmark-disable"}).execute(told())
        sent = service_at_work.started[0].body["Arguments"]
        assert sent["--job-bookmark-option"] == "job-bookmark-disable"
        with pytest.raises(OptionError, match="Glue's own bookmark would skip files"):
            self.task(remote, script_args={"--job-bookmark-option": "job-bookmark-enable"})

    def test_value_with_a_blank_is_refused_where_it_would_be_cut(self, remote: World, service_at_work: Service) -> None:
        task = self.task(remote, conf_for=lambda _: {"spark.y": "a b"})
        with pytest.raises(AirflowFailException, match="has a blank"):
            task.execute(told())
        assert service_at_work.started == []


@pytest.mark.seldom
class TestDatabricks(SubmitterPromises):
    operator, service = BookmarkDatabricksSubmitRunOperator, stand_in.Databricks
    runtime_uri: ClassVar[str] = "dbfs:/code/airflow_bookmarks-0.1.0-py3-none-any.whl"
    not_waiting: ClassVar[dict[str, Any]] = {"wait_for_termination": False}
    for_glue: ClassVar[dict[str, Any]] = {"ship_runtime": False, "runtime_uri": None}

    def test_wheel_does_not_bring_awsglue(self, remote: World) -> None:
        with pytest.raises(OptionError, match="wheel does not bring awsglue"):
            self.task(remote, glue=True)

    def connect(self, patch: pytest.MonkeyPatch, service: Service, world: World) -> None:
        value = {"conn_type": "databricks", "host": "127.0.0.1", "port": service.port, "schema": "http"}
        patch.setenv("AIRFLOW_CONN_DATABRICKS_DEFAULT", json.dumps({**value, "extra": {"token": "dapi"}}))

    def arguments(self, conf: dict[str, str], world: World) -> dict[str, Any]:
        cluster = {"spark_version": "17.3.x", "num_workers": 1, **({"spark_conf": conf} if conf else {})}
        return {
            "new_cluster": cluster,
            "spark_python_task": {"python_file": "dbfs:/code/job.py"},
            "polling_period_seconds": 1,
        }

    def event(self, *, is_success: bool) -> dict[str, Any]:
        result = "SUCCESS" if is_success else "FAILED"
        state = {"life_cycle_state": "TERMINATED", "result_state": result, "state_message": ""}
        return {"run_id": 7, "run_page_url": "http://run", "run_state": json.dumps(state), "errors": []}

    @pytest.mark.parametrize("place", ["tasks", "json", "tasks in json"])
    def test_request_may_be_given_in_each_form(self, remote: World, service_at_work: Service, place: str) -> None:
        service_at_work.driver = self.drive(remote)
        part = self.arguments(USER, remote)
        del part["polling_period_seconds"]
        one = [{"task_key": "copy", **part}]
        forms: dict[str, dict[str, Any]] = {
            "tasks": {"tasks": one},
            "json": {"json": part},
            "tasks in json": {"json": {"tasks": one}},
        }
        arguments: dict[str, Any] = {"task_id": "copy", "runtime_uri": self.runtime_uri, "polling_period_seconds": 1}

        self.operator(**{**arguments, **forms[place]}).execute(told())

        (asked,) = service_at_work.started
        conf = service_at_work.conf(asked)
        assert Settings.from_conf(conf).job == JOB
        assert USER.items() <= conf.items()
        assert service_at_work.runtimes(asked) == [self.runtime_uri]

    def test_compute_that_takes_no_conf_is_refused(self, remote: World) -> None:
        with pytest.raises(OptionError, match="only with a new_cluster"):
            self.task(remote, new_cluster=None, existing_cluster_id="c")

    def test_task_that_is_no_python_is_refused(self, remote: World) -> None:
        with pytest.raises(OptionError, match="scripts in Python"):
            self.task(remote, spark_python_task=None, spark_jar_task={"main_class_name": "Main"})

    def test_several_tasks_are_refused(self, remote: World) -> None:
        with pytest.raises(OptionError, match="2 tasks"):
            self.task(remote, tasks=[{"task_key": "a"}, {"task_key": "b"}])


class TestKubernetes(SubmitterPromises):
    operator, service = BookmarkSparkKubernetesOperator, stand_in.Kubernetes
    why_not_deferred: ClassVar[str] = (
        ""
        if deletes_after_deferral(SparkKubernetesOperator)
        else "this Kubernetes provider can't delete an application after a deferral: the operator waits in the worker"
    )

    # The end of a driver's pod is waited for in every case.
    test_end_that_is_not_waited_for_is_refused = None  # type: ignore[assignment]

    def connect(self, patch: pytest.MonkeyPatch, service: Service, world: World) -> None:
        patch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", json.dumps({"conn_type": "kubernetes"}))
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": service.url}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
        (world.folder / "kube.yaml").write_text(yaml.safe_dump(config))

    def arguments(self, conf: dict[str, str], world: World) -> dict[str, Any]:
        spec = {"type": "Python", "mainApplicationFile": "s3a://code/job.py", "driver": {}, "executor": {}}
        body = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": {"name": "copy"}}
        return {
            "template_spec": {**body, "spec": {**spec, **({"sparkConf": conf} if conf else {})}},
            "config_file": str(world.folder / "kube.yaml"),
            "get_logs": False,
            "poll_interval": 1,
        }

    def event(self, *, is_success: bool) -> dict[str, Any]:
        status = "success" if is_success else "failed"
        return {"status": status, "name": "copy-driver", "namespace": "default", "message": "ended"}

    def test_application_may_be_a_file(self, remote: World, service_at_work: Service) -> None:
        service_at_work.driver = self.drive(remote)
        arguments = self.arguments(USER, remote)
        file = remote.folder / "application.yaml"
        file.write_text(yaml.safe_dump(arguments.pop("template_spec")))

        self.task(remote, template_spec=None, application_file=str(file)).execute(told())

        assert USER.items() <= service_at_work.conf(service_at_work.started[0]).items()

    def test_task_waits_in_the_worker_where_the_provider_fails_after_a_deferral(
        self,
        remote: World,
        service_at_work: Service,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr("airflow_bookmarks.operators.kubernetes.deletes_after_deferral", lambda _: False)
        service_at_work.driver = self.drive(remote)
        task = self.task(remote, deferrable=True)

        summary = task.execute(told())

        assert summary["is_published"]
        assert vars(task)["deferrable"] is True
        assert "Install apache-airflow-providers-cncf-kubernetes 10.11 or later" in caplog.text

    @pytest.mark.parametrize(
        ("deps", "expected"), [({}, ["x.zip", "y.py"]), ({"deps": {"pyFiles": ["z.zip"]}}, ["z.zip"])]
    )
    def test_python_files_of_the_conf_stay_beside_the_runtime_unless_the_deps_have_some(
        self, remote: World, service_at_work: Service, deps: dict[str, Any], expected: list[str]
    ) -> None:
        service_at_work.driver = self.drive(remote)
        arguments = self.arguments({"spark.submit.pyFiles": "x.zip, y.py"}, remote)
        arguments["template_spec"]["spec"] |= deps

        self.task(remote, **arguments).execute(told())

        (asked,) = service_at_work.started
        assert service_at_work.runtimes(asked) == [*expected, self.runtime_uri]
        assert "spark.submit.pyFiles" not in service_at_work.conf(asked)

    def test_application_that_is_missing_is_refused(self, remote: World) -> None:
        with pytest.raises(OptionError, match="neither application_file nor template_spec"):
            self.task(remote, template_spec=None)


# ---- the arguments of spark-submit


def test_arguments_of_the_application_are_left_alone() -> None:
    given = SubmitArguments.of(["--conf", "a=1", "--supervise", "--py-files=x.zip", "job.py", "--conf", "b=2"])

    added = given.adding({"a": "1", "c": "3 4"}, "r.zip").as_list()

    assert added == [
        *("--conf", "c=3 4", "--conf", "a=1", "--supervise", "--py-files", "x.zip,r.zip"),
        *("job.py", "--conf", "b=2"),
    ]


def test_files_that_the_conf_names_stay_beside_the_runtime() -> None:
    given = SubmitArguments.of(["-c", "spark.submit.pyFiles=x.zip", "job.py"])

    assert given.adding({}, "r.zip").py_files == "x.zip,r.zip"


# ---- arguments that another task gives

ELSEWHERE: dict[str, Any] = {"runtime_uri": "s3://code/airflow_bookmarks.zip"}
IN_IMAGE: dict[str, Any] = {"ship_runtime": False}


TEMPLATED: list[Any] = [
    (BookmarkLivyOperator, {"file": "job.py"}, "runtime_uri"),
    (BookmarkGlueJobOperator, {"job_name": "copy", **ELSEWHERE}, "script_args"),
    (BookmarkEmrAddStepsOperator, {"job_flow_id": "j-1", **ELSEWHERE}, "steps"),
    (
        BookmarkEmrServerlessStartJobOperator,
        {"application_id": "a", "execution_role_arn": "arn:aws:iam::1:role/r", **ELSEWHERE},
        "job_driver",
    ),
    pytest.param(
        BookmarkDatabricksSubmitRunOperator,
        IN_IMAGE,
        "json",
        marks=pytest.mark.skipif(
            not hasattr(DatabricksSubmitRunOperator(task_id="plain", json={}), "tasks"),
            reason="the Databricks provider of Airflow 3.2 itself looks into `json` when the DAG file is read",
        ),
    ),
    (BookmarkSparkKubernetesOperator, ELSEWHERE, "application_file"),
]


@pytest.mark.parametrize(("operator", "given", "name"), TEMPLATED)
def test_what_another_task_gives_is_checked_when_the_task_runs(
    operator: type[BaseOperator], given: dict[str, Any], name: str
) -> None:
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        arguments: dict[str, Any] = {**given, name: BaseOperator(task_id="before").output}
        operator(task_id="copy", **arguments)

    assert dag.get_task("copy").upstream_task_ids == {"before"}
