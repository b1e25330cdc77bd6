"""Take `flights_clean` back to an earlier run, once a person has seen what that would do and approved it.

Trigger it with the run to keep and a reason. `preview` changes nothing; `approve` waits for somebody, and shows what
`preview` found; `rewind` is refused if the job has moved since; `run_again` reads what was undone. Written data stays,
and `flights_clean` replaces day by day what it reads again. Connection: `bookmarks_default`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param

from airflow_bookmarks.operators.change import BookmarkRewindOperator

JOB = "flights_clean.clean"
SHOWN = """
{% set seen = ti.xcom_pull(task_ids="preview") %}
Reason: {{ params.reason }}

- runs undone: {{ seen.undone_run_count }}
- read again: {{ seen.read_again.files }} files, {{ seen.read_again.bytes }} bytes
- consumers that have read it: {{ seen.consumers or "none" }}
- would hold rows twice, unless the job replaces them: {{ seen.written_twice | join(", ") or "nothing" }}
"""

with DAG(
    "rewind_with_approval",
    description="Preview a rewind of flights_clean, let a person approve it, rewind, and run the job again",
    schedule=None,
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    default_args={"retries": 2},
    params={
        "to_run": Param(
            type="integer", minimum=1, title="Run to keep", description="Its number; later ones are undone."
        ),
        "reason": Param(type="string", minLength=1, title="Reason", description="Kept with who and when."),
    },
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    # [start rewind_with_approval]
    to_run = "{{ params.to_run }}"
    preview = BookmarkRewindOperator(
        task_id="preview",
        job=JOB,
        to_run=to_run,
        reason="{{ params.reason }}",
        dry_run=True,
    )
    approve = ApprovalOperator(task_id="approve", subject=f"Rewind {JOB} to run {to_run}?", body=SHOWN)
    rewind = BookmarkRewindOperator(
        task_id="rewind", job=JOB, to_run=to_run, reason="{{ params.reason }}", expected_version=preview.output
    )
    run_again = TriggerDagRunOperator(task_id="run_again", trigger_dag_id="flights_clean")
    preview >> approve >> rewind >> run_again
    # [end rewind_with_approval]
