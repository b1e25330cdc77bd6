"""The DAG that the guide to databases prints is what its text says."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_bookmarks import BookmarkSparkSubmitOperator
from tests.airflow.compat import DagBag

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "databases.md"


def test_dag_of_the_page_hands_the_logins_of_its_job_to_the_driver(tmp_path: Path) -> None:
    job, dag = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "shop.py").write_text(dag)

    bag = DagBag(dag_folder=str(tmp_path))

    assert bag.import_errors == {}
    (task,) = bag.dags["shop"].tasks
    assert isinstance(task, BookmarkSparkSubmitOperator)
    assert task.bookmark_databases == re.findall(r"conn:(\w+)", job)
    assert f"{task.dag_id}.{task.task_id}" == "shop.orders"  # whose history the page shows
