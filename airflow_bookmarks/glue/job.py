"""`Job`: init and commit of a script for AWS Glue, by the rules of `BookmarkedJob`."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import JobBusyError, MisuseError, NameInvalidError, OptionError
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.core.settings import PREFIX, Settings
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.glue.arguments import AssumedText
from airflow_bookmarks.glue.classic import check_classic
from airflow_bookmarks.glue.listing_log import show_listing_log
from airflow_bookmarks.glue.metrics import send_metrics
from airflow_bookmarks.glue.names import name_of
from airflow_bookmarks.glue.run import GlueRun, current_run, open_runs
from airflow_bookmarks.spark.features import session_conf
from airflow_bookmarks.spark.job import BookmarkedJob
from airflow_bookmarks.spark.opening import show_log
from airflow_bookmarks.spark.session import changed_conf

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

STORE_VARIABLE = "AIRFLOW_BOOKMARKS_STORE"
_OF_BOOKMARK = ("job_bookmark_option", "job_bookmark_from", "job_bookmark_to")
_HOW_TO_WAIT = f"A script that is submitted by hand waits for it with --conf {PREFIX}on_conflict=wait."
_LOOKS_LIKE_BOOKMARK = re.compile(r"-*job[-_]?bookmark", re.IGNORECASE)


class GlueJob:
    """The bookmark of a script, which knows it as `awsglue.job.Job`: `init` begins a run, `commit` ends it.

    Args:
        glue_context: a GlueContext or a SparkSession.

    Example:
        args = getResolvedOptions(sys.argv, ["JOB_NAME"])
        job = Job(GlueContext(SparkContext.getOrCreate()))
        job.init(args["JOB_NAME"], args)
        ...
        job.commit()
    """

    def __init__(self, glue_context: Any) -> None:
        session = getattr(glue_context, "spark_session", glue_context)
        check_classic(session)
        if not isinstance(session, SparkSession):
            raise TypeError(
                f"Job({type(glue_context).__name__}): expected a GlueContext or a SparkSession. Nothing was read or "
                "changed."
            )
        self._session = session

    def init(self, job_name: str, args: Mapping[str, Any] | None = None) -> None:
        """Begin the run of a job: with enable, reads of a context are what is new, and writes wait for the commit.

        Args:
            job_name: the key of the bookmark; any text.
            args: the result of `getResolvedOptions`: option, from and to, JOB_RUN_ID and TempDir are taken from it.
                Without an option, that of the operator counts, and without that "disable".

        Raises:
            OptionError: an option is unknown, or contradicts the operator's; or there is no store to commit to.
            NameInvalidError: the name is empty.
            MisuseError: a run has begun that is not committed.
            JobBusyError: another run holds the job.
        """
        run = current_run(self._session)
        show_log()
        show_listing_log()
        try:
            _begin(run, job_name, {} if args is None else args)
        except BaseException as error:  # whatever it was, the script may catch it, and would read everything
            run.fail(error)
            raise
        _watch_exit()

    def isInitialized(self) -> bool:
        """Return whether a run has begun and is not committed."""
        run = current_run(self._session)
        return run.is_begun and not run.is_committed

    def commit(self) -> None:
        """Commit the run: positions, staged rows and purges take effect together.

        Without `init` it does nothing, with a warning, as after a commit with nothing read or written since.

        Raises:
            MisuseError: `init` has failed; or something was read or written after the commit.
        """
        run = current_run(self._session)
        run.check()
        if not run.is_begun:
            log.warning("bookmark: job.commit() without job.init() does nothing: there is no bookmark to commit")
        elif not run.is_committed:
            send_metrics(run, run.commit())
        elif run.is_used:
            raise MisuseError(
                f"job {run.job_name!r}: job.commit() again, and something was read or written since the first one. "
                "That is not part of any run. Call job.init again before it, or commit once, at the end."
            )
        else:
            log.warning("bookmark %s: job.commit() again does nothing: nothing was read or written since", run.job_name)


Job = GlueJob  # by the name that scripts import


def _begin(run: GlueRun, job_name: str, args: Mapping[str, Any]) -> None:
    if run.is_begun and not run.is_committed:
        raise MisuseError(
            f"job.init({job_name!r}): the run of job {run.job_name!r} has begun and is not committed. Nothing was "
            "committed or published. Call job.commit() before the next job.init."
        )
    _check_keys(args)
    settings = Settings.from_conf(session_conf(run.spark))
    name = _job_key(job_name, settings.job)
    if name != job_name:
        log.info("bookmark %s: the name of job %r of the script, as state and commands have it", name, job_name)
    option = _option(job_name, args, settings)
    run_id = _run_id(run, args, settings)
    temp_dir = args.get("TempDir") or args.get("RedshiftTempDir") or run.settings.temp_dir
    store = None if settings.store is not None else os.environ.get(STORE_VARIABLE) or None
    job = None
    if settings.store is not None or store is not None:
        job = _begun(
            run,
            settings,
            name,
            run_id,
            store=store,
            option=option.value,
            from_run=args.get("job_bookmark_from"),
            to_run=args.get("job_bookmark_to"),
            manifest_uri=None if settings.manifest_uri else temp_dir or None,
        )
        run_id = job.active_run.execution_id
    elif option is Option.DISABLE:
        log.info("bookmark %s: option disable, and no store is named: nothing is recorded of this run", job_name)
    else:
        raise OptionError(
            f"job.init({job_name!r}): no store, and option {option.value!r} needs one. Nothing was read or changed. "
            f"Set the environment variable {STORE_VARIABLE} of the driver, or --conf {PREFIX}store, e.g. "
            "'dynamodb://bookmarks?region=eu-west-1'; an operator sets it."
        )
    run.begin(job, job_name=job_name or name, option=option, run_id=run_id, temp_dir=temp_dir, arguments=args)


def _begun(run: GlueRun, settings: Settings, name: str, run_id: str | None, **given: Any) -> BookmarkedJob:
    """Return the job of a run that has begun in a store; `given` are further arguments of `BookmarkedJob`."""
    with ExitStack() as changed:
        if settings.run_id is not None and run_id is not None:
            # the operator's, which every run but the first of a script adds to
            changed.enter_context(changed_conf(run.spark, {f"{PREFIX}run_id": run_id}))
        job = BookmarkedJob(run.spark, name, run_id=run_id, **given)
        if run.reach_catalog is not None:  # what is due may go to a connection that the script has not named yet
            run.reach_catalog(job.store)
        try:
            job.begin()
        except JobBusyError as error:
            error.add_note(_HOW_TO_WAIT)
            raise
        job.uses.take_rows_for_any()  # Map, relationalize and others hand rows through Python
    return job


def _check_keys(args: Mapping[str, Any]) -> None:
    """Refuse what looks like an option of the bookmark and would be ignored."""
    for key in args:
        if _LOOKS_LIKE_BOOKMARK.match(str(key)) and key not in _OF_BOOKMARK:
            raise OptionError(
                f"job.init: unknown argument {key!r}; known are {', '.join(_OF_BOOKMARK)}. Nothing was read or changed."
            )


def _job_key(job_name: str, operators: str | None) -> str:
    """Return the key of the bookmark: the script's name for its job, which has to be the operator's too.

    A script that was given no JOB_NAME passes an empty text: then it is the operator's.
    """
    if operators is not None and job_name in ("", operators):
        return operators
    if not job_name:
        raise NameInvalidError(
            f"job.init({job_name!r}): the job has no name, which is the key of its bookmark. Nothing was read or "
            "changed. Submit the script with --JOB_NAME, or give job.init a name."
        )
    name = name_of("job", job_name)
    if operators is not None and name != operators:
        raise OptionError(
            f"the script calls job.init({job_name!r}) and the operator waits for job {operators!r} ({PREFIX}job): it "
            f"would never see a commit. Nothing was read or changed. Give the operator bookmark_job={name!r}."
        )
    return name


def _option(job_name: str, args: Mapping[str, Any], settings: Settings) -> Option:
    """Return the option in force: given by hand, else the operator's, else Glue's default."""
    given = args.get("job_bookmark_option")
    if given and not isinstance(given, AssumedText):
        return Option.parse(str(given))
    if settings.option is not None:
        return Option.parse(settings.option)
    log.info("bookmark %s: option disable (default of scripts for AWS Glue)", job_name)
    return Option.DISABLE


def _run_id(run: GlueRun, args: Mapping[str, Any], settings: Settings) -> str | None:
    """Return the run id: the operator's, else given by hand, else what was made up; later runs add their number."""
    given = args.get("JOB_RUN_ID") or None
    if given is None or isinstance(given, AssumedText):
        given = settings.run_id or given
    elif settings.run_id is not None and given != settings.run_id:
        log.info(
            "bookmark: --JOB_RUN_ID %s is for the script; its run is %s, by which the operator waits for it",
            given,
            settings.run_id,
        )
        given = settings.run_id
    return given if given is None or not run.runs else f"{given}-{run.runs + 1}"


@cache
def _watch_exit() -> None:
    """Abort at the end of the process what was not committed."""
    atexit.register(end_of_process)


def end_of_process() -> None:
    """Abort the runs that no commit has ended, and log what they leave out; called when the process ends."""
    error = getattr(sys, "last_value", None)
    reason = f"the script ended without job.commit(){'' if error is None else f': {cause_of(error)}'}"
    for run in open_runs():
        if run.option is Option.ENABLE:
            log.error(
                "bookmark %s: run %s was not committed: %s. Nothing was published (what Spark's own writer has written "
                "stays), and the next run reads the same input again. Read contexts: %s; outputs: %s",
                run.job_name,
                run.run_id,
                reason.rstrip("."),
                ", ".join(sorted(run.contexts)) or "none",
                ", ".join(sorted(run.outputs)) or "none",
            )
        else:
            log.info("bookmark %s: option %s, %s", run.job_name, run.option.value, reason)
        if run.job is not None:
            run.job.abort(reason)
        run.end()
