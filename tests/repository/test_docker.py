"""docker/ runs what was tested: the versions of constraints.txt, as nobody special, seen by this machine alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_bookmarks.get_provider_info import get_provider_info
from airflow_bookmarks.version import __version__
from tools.jars import SETS

_ROOT = Path(__file__).parents[2]
_DOCKERFILE = (_ROOT / "docker/Dockerfile").read_text()
_COMPOSE: dict[str, Any] = yaml.safe_load((_ROOT / "docker/compose.yaml").read_text())
_SERVICES: dict[str, dict[str, Any]] = _COMPOSE["services"]
_OWN_IMAGE = "airflow-bookmarks/"


def _constraints() -> dict[str, str]:
    lines = (_ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def _instructions() -> list[str]:
    """Return the Dockerfile's instructions, each on one line, without comments."""
    lines = [line for line in _DOCKERFILE.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [line for line in joined.splitlines() if line.strip()]


def _pip_installs() -> list[list[str]]:
    """Return the arguments of each `pip install` and `uv pip install`."""
    commands = [c for i in _instructions() if i.startswith("RUN ") for c in i.removeprefix("RUN ").split("&&")]
    return [command.split("pip install", 1)[1].split() for command in commands if "pip install" in command]


def test_every_line_of_the_constraints_is_one_exact_pin() -> None:
    lines = (_ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]

    assert [pin for pin in pins if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", pin)] == []
    assert len({pin.split("==")[0] for pin in pins}) == len(pins)


def test_both_spark_packages_have_the_version_of_the_extra() -> None:
    pins = _constraints()
    project = (_ROOT / "pyproject.toml").read_text()

    assert f'spark = ["pyspark=={pins["pyspark"]}", "pyspark-client=={pins["pyspark-client"]}"]' in project
    assert pins["pyspark"] == pins["pyspark-client"]


def test_every_python_package_of_an_image_is_held_by_the_constraints() -> None:
    pins = _constraints()
    installs = _pip_installs()
    options = {"--constraint", "constraints.txt", "--no-cache-dir", "--no-deps", "airflow_provider_bookmarks-*.whl"}

    assert installs
    for arguments in installs:
        assert "--constraint constraints.txt" in " ".join(arguments)
        packages = {argument.strip("'") for argument in arguments} - options
        assert packages <= pins.keys()


def _sent_to_the_builder() -> list[str]:
    """Return the files of the repository that Docker gets, by the names that its ignore file lets through."""
    lines = (_ROOT / "docker/Dockerfile.dockerignore").read_text().splitlines()
    names = [line.removeprefix("!") for line in lines if line.startswith("!")]
    listed = subprocess.run(["git", "ls-files", "-z", *names], cwd=_ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name]


def test_everything_that_is_sent_to_the_builder_is_there() -> None:
    first = {name.split("/")[0] for name in _sent_to_the_builder()}

    assert {"Makefile", "airflow_bookmarks", "constraints.txt", "pyproject.toml", "tools"} <= first
    assert "make dist" in " ".join(_instructions())


@pytest.mark.slow
@pytest.mark.thorough  # installs packages, and builds the page
def test_wheel_of_the_image_is_built_from_what_is_sent_to_the_builder(tmp_path: Path) -> None:
    for name in _sent_to_the_builder():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(_ROOT / name, tmp_path / name)
    of_make = {"CONSTRAINTS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VENV"}  # of the one that runs these tests
    environment = {name: value for name, value in os.environ.items() if name not in of_make}
    subprocess.run(["make", "dist"], cwd=tmp_path, env=environment, check=True, capture_output=True)

    (wheel,) = (tmp_path / "dist").glob("airflow_provider_bookmarks-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "airflow_bookmarks/plugin/www/dist/main.js" in archive.namelist()


def test_a_version_named_in_docker_is_that_of_the_constraints() -> None:
    pins = _constraints()
    text = "\n".join(path.read_text() for path in sorted((_ROOT / "docker").iterdir()) if path.is_file())

    named = re.findall(r"([a-z0-9-]+)==([0-9a-z.]+)", text)

    assert [(name, version) for name, version in named if pins.get(name) != version] == []


def test_every_image_has_an_exact_tag() -> None:
    bases = [i.split()[1] for i in _instructions() if i.startswith("FROM ") and i.split()[1] != "base"]
    images = [service["image"] for service in _SERVICES.values()]

    assert [image for image in bases + images if not re.search(r":\d+\.\d+\.\d+", image)] == []


def test_own_images_carry_the_version_of_the_package() -> None:
    own = {service["image"] for service in _SERVICES.values() if service["image"].startswith(_OWN_IMAGE)}

    assert own == {f"{_OWN_IMAGE}airflow:{__version__}", f"{_OWN_IMAGE}spark:{__version__}"}


def test_the_dynamodb_api_is_the_one_that_the_tests_use() -> None:
    assert _SERVICES["dynamodb"]["image"] == f"amazon/dynamodb-local:{SETS['dynamodb-local'].version}"


@pytest.mark.parametrize("target", ["airflow", "spark"])
def test_image_does_not_run_as_root(target: str) -> None:
    stage = next(part for part in re.split(r"(?m)^FROM ", _DOCKERFILE) if part.startswith(f"base AS {target}\n"))

    user = re.findall(r"(?m)^USER (\d+)", stage)

    assert user
    assert int(user[-1]) > 0


def test_every_service_that_stays_says_whether_it_is_healthy() -> None:
    staying = {name: service for name, service in _SERVICES.items() if service["restart"] != "no"}

    assert [name for name, service in staying.items() if "healthcheck" not in service] == []


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in _SERVICES.values() for port in service.get("ports", [])]

    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_driver_and_executors_see_the_same_data() -> None:
    assert "data:/data" in _SERVICES["airflow"]["volumes"]
    assert "data:/data" in _SERVICES["spark-worker"]["volumes"]


def test_the_bookmarks_connection_has_only_fields_that_the_provider_declares() -> None:
    connection = json.loads(_SERVICES["airflow"]["environment"]["AIRFLOW_CONN_BOOKMARKS_DEFAULT"])
    (declared,) = get_provider_info()["connection-types"]

    assert connection["conn_type"] == declared["connection-type"]
    assert connection["extra"].keys() <= declared["conn-fields"].keys()
