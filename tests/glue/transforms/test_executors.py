"""What executors import for the functions of a script: they may have no more than Spark and the zip."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy

from airflow_bookmarks.glue.transforms.records import plain

_SCRIPT = """
import sys
sys.modules.update(dict.fromkeys(["airflow", "boto3", "numpy", "pandas", "sqlalchemy"]))
from airflow_bookmarks.glue.transforms.records import plain
print(plain({"a": (1, [2.5])}))
"""


def test_functions_of_a_script_need_no_other_package() -> None:
    command = [sys.executable, "-c", _SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])

    assert done.stdout == "{'a': [1, [2.5]]}\n"


def test_numbers_of_numpy_become_those_of_python() -> None:
    value = plain({"n": numpy.int64(3)})

    assert value == {"n": 3}
    assert type(value["n"]) is int
