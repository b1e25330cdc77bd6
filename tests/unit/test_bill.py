"""The bill of materials names what is installed, each thing once, and as constraints.txt pins it."""

from __future__ import annotations

import json
from pathlib import Path

from tools.bill import bill

_ROOT = Path(__file__).parents[2]


def test_bill_has_each_pin_of_what_is_installed_once() -> None:
    made = bill()
    lines = (_ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    parts = {part["name"]: part["version"] for part in made["components"]}
    assert len(parts) == len(made["components"])
    assert {name: parts[name] for name in ("boto3", "numpy", "apache-airflow")} == {
        name: pins[name] for name in ("boto3", "numpy", "apache-airflow")
    }
    assert {name: version for name, version in parts.items() if pins.get(name, version) != version} == {}
    assert made["metadata"]["component"]["name"] == "airflow-provider-bookmarks"


def test_bill_is_the_same_each_time_and_names_no_host() -> None:
    assert bill() == bill()
    assert "://" not in json.dumps([part["purl"] for part in bill()["components"]])
    assert {part["purl"] for part in bill()["components"]} == {part["bom-ref"] for part in bill()["components"]}
