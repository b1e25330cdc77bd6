"""The bill of materials names what is installed, each thing once, and as constraints.txt pins it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools.patience import STUCK_S

_ROOT = Path(__file__).parents[2]


@pytest.mark.seldom
def test_bill_has_each_pin_of_what_is_installed_once(tmp_path: Path) -> None:
    subprocess.run(["make", "sbom", f"BUILD={tmp_path}"], cwd=_ROOT, check=True, capture_output=True, timeout=STUCK_S)
    text = (tmp_path / "sbom.json").read_text()
    made = json.loads(text)
    lines = (_ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().split("==") for line in lines if line and not line.startswith("#"))
    parts = {part["purl"].split("/")[1].split("@")[0]: part["version"].lower() for part in made["components"]}
    assert len(parts) == len(made["components"])
    assert {name: parts[name] for name in ("boto3", "numpy", "apache-airflow")} == {
        name: pins[name] for name in ("boto3", "numpy", "apache-airflow")
    }
    assert {name: version for name, version in parts.items() if pins.get(name, version) != version} == {}
    assert made["metadata"]["component"]["name"] == "airflow-provider-bookmarks"
    assert str(_ROOT) not in text
