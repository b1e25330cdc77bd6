"""Which combinations of Spark, Airflow and Python are tested, what each installs, and which tests it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

NEWEST = "constraints.txt"

# What the tests of the driver side use beside the driver's own boto3 and numpy: no Airflow among it.
_DRIVER_TESTS = (
    *("boto3", "numpy", "fsspec", "hypothesis", "moto[server]", "psutil", "pytest", "pytest-xdist", "pyyaml"),
    *("sqlalchemy", "psycopg[binary]", "PyMySQL"),  # of the extras for databases
    "sqlglot",  # parses the statements of dialects
)
_RUNTIME = ("tests/spark",)
_WITH_3_5 = ("numpy==1.26.4", "pandas==2.3.3", "pyarrow==17.0.0")  # its Connect client wants NumPy 1
# The oldest boto3 and numpy that a driver meets: those of AWS Glue 5.0, on the Spark it has.
_OLDEST = ("boto3==1.34.131", "botocore==1.34.131", "s3transfer==0.10.1")
_DRIVER = ("tests/core", "tests/store", "tests/sources", "tests/sinks", "tests/lifecycle", "tests/testing")
_WORKER = ("tests/airflow", "tests/operators", "tests/plugin", "tests/cli/test_cli.py")
# What an older Spark or Airflow is most likely to lack: with the rest CI would take too long for each change.
_RUNTIME_IN_BRIEF = tuple(f"tests/spark/test_{name}.py" for name in ("chain", "features", "life", "options", "sinks"))
_WORKER_IN_BRIEF = (
    *(f"tests/airflow/{name}" for name in ("decorators", "hooks", "sensors", "triggers")),
    *(f"tests/airflow/operators/test_{name}.py" for name in ("change_operators", "link", "operator", "report")),
    *(f"tests/airflow/test_{name}.py" for name in ("airflow_compat", "database", "field_types", "provider_info")),
    "tests/plugin/test_contract.py",
    "tests/cli/test_cli.py",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of versions.

    Attributes:
        name: What `make matrix ONLY=` calls it.
        row: The Spark of the table, such as "3.5, Connect".
        column: The Airflow or the Python of the table, such as "Airflow 3.0".
        python: The version of Python, such as "3.11".
        requirements: What `pip` is asked to install.
        tests: The paths that pytest runs.
        in_brief: Those that it runs with `--brief`, within `tests`; empty stands for all.
        overrides: Requirements that win over `constraints`.
        constraints: The file of pins, below the root of the project.
        environment: Variables that pytest runs under, by name and value.
        driver: The name of the cell whose Python and Spark the tests submit to, or empty.
        has_project: Whether the package is installed; without it, it is imported from the clone, as a driver does that
            gets it by `--py-files`.
        is_wheel: Whether it is installed as users do: its wheel, by the command of README.md, into an environment that
            has Airflow already, in the versions of a file of constraints.
        is_thorough: Whether its tests marked thorough are always run.
        is_compiled: Whether Spark compiles queries, as a user's does.
    """

    name: str
    row: str
    column: str
    python: str
    requirements: tuple[str, ...]
    tests: tuple[str, ...]
    in_brief: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    constraints: str = NEWEST
    environment: tuple[tuple[str, str], ...] = ()
    driver: str = ""
    has_project: bool = False
    is_wheel: bool = False
    is_thorough: bool = False
    is_compiled: bool = True


def _classic(spark: str, version: str, *overrides: str, python: str = "3.11") -> Cell:
    """Return the cell of a driver without Airflow that has a classic session."""
    return Cell(
        name=f"spark-{spark}",
        row=spark,
        column="driver alone",
        python=python,
        requirements=(*_DRIVER_TESTS, "pyspark"),
        tests=_RUNTIME,
        in_brief=_RUNTIME_IN_BRIEF,
        overrides=(f"pyspark[connect]=={version}", *overrides),
    )


def _connect(spark: str, version: str, *overrides: str) -> Cell:
    """Return the cell of a driver without Airflow that is a client of a Spark Connect server."""
    environment = (("SPARK_TESTS_SESSION", "connect"),)
    return replace(
        _classic(spark, version, *overrides),
        name=f"spark-{spark}-connect",
        row=f"{spark}, Connect",
        environment=environment,
        is_compiled=False,  # that the server does, whose Spark has a cell of its own
    )


def _clusters(spark: str) -> Cell:
    """Return the cell of the newest worker, which submits to clusters that have the Spark of a driver alone."""
    return Cell(
        name=f"clusters-{spark}",
        row=spark,
        column="submitted by the newest Airflow",
        python="3.11",
        requirements=("-e", ".[spark,dev]"),
        tests=("tests/clusters/test_spark_versions.py",),
        driver=f"spark-{spark}",
        has_project=True,
    )


def _airflow(airflow: str, spark: str, version: str, constraints: str, *others: str) -> Cell:
    """Return the cell of a worker with an Airflow."""
    return Cell(
        name=f"airflow-{airflow}",
        row=spark,
        column=f"Airflow {airflow}",
        python="3.11",
        requirements=("-e", ".[dev]", f"pyspark=={version}", f"pyspark-client=={version}", *others),
        tests=_WORKER,
        in_brief=_WORKER_IN_BRIEF,
        constraints=constraints,
        has_project=True,
    )


def _python(python: str) -> Cell:
    """Return the cell of a Python with the newest of everything else; a driver of `CELLS` has it with a Spark."""
    return Cell(
        name=f"python-{python}",
        row="4.1",
        column=f"Python {python}",
        python=python,
        requirements=("-e", ".[spark,dev]"),
        tests=(*_WORKER, *_DRIVER),
        has_project=True,
    )


def _wheel(python: str) -> Cell:
    """Return the cell of an Airflow into which the wheel is installed by the command of README.md."""
    return Cell(
        name=f"wheel-{python}",
        row="4.1",
        column=f"wheel, Python {python}",
        python=python,
        requirements=("hatchling", "psutil", "pytest", "pytest-xdist"),
        tests=("tests/airflow/test_readme.py", "tests/repository/test_installed.py"),
        has_project=True,
        is_wheel=True,
        is_thorough=True,
    )


CELLS: tuple[Cell, ...] = (
    _classic("3.5", "3.5.9", *_WITH_3_5, *_OLDEST),
    # The Spark, boto3 and numpy of AWS Glue 5.0.
    replace(
        _classic("3.5", "3.5.9", *_WITH_3_5, *_OLDEST),
        name="glue-3.5",
        column="scripts for AWS Glue",
        requirements=(*_DRIVER_TESTS, "pyspark", "redshift-connector"),
        tests=("tests/glue",),
        in_brief=(),
    ),
    # Each Python runs a driver, and each Spark a Python: not each of both with each of the other.
    _classic("4.0", "4.0.5", python="3.12"),
    _classic("4.1", "4.1.3"),
    _classic("4.2", "4.2.0", python="3.13"),
    _connect("3.5", "3.5.9", *_WITH_3_5),
    _connect("4.0", "4.0.5"),
    _connect("4.1", "4.1.3"),
    _connect("4.2", "4.2.0"),
    # `spark-3.5` has these, too: its tests are those of the runtime.
    Cell(
        name="driver-oldest",
        row="3.5",
        column="oldest boto3 and numpy",
        python="3.11",
        requirements=(*_DRIVER_TESTS, "pyspark", "deltalake"),  # it writes the tables that are read without Spark
        tests=_DRIVER,
        overrides=("pyspark[connect]==3.5.9", *_WITH_3_5, *_OLDEST),
    ),
    _clusters("3.5"),
    _clusters("4.2"),
    # Its SQLAlchemy reaches PostgreSQL by psycopg2 alone.
    _airflow("3.0", "4.0", "4.0.4", "tools/matrix/constraints/airflow-3.0.txt", "psycopg2-binary"),
    _airflow("3.1", "4.1", "4.1.3", "tools/matrix/constraints/airflow-3.1.txt"),
    _airflow("3.2", "4.1", "4.1.3", "tools/matrix/constraints/airflow-3.2.txt"),
    _airflow("3.3", "4.1", "4.1.3", NEWEST),
    _python("3.12"),
    _python("3.13"),
    _wheel("3.11"),
    _wheel("3.12"),
    _wheel("3.13"),
)


class UnknownCellError(ValueError):
    """A name that is no cell's."""


def named(names: list[str]) -> tuple[Cell, ...]:
    """Return the cells of these names, each once; all of them for no name.

    Raises:
        UnknownCellError: A name is no cell's.
    """
    known = {cell.name: cell for cell in CELLS}
    if unknown := [name for name in names if name not in known]:
        raise UnknownCellError(f"no cell {', '.join(unknown)}; there are: {', '.join(known)}. Nothing was run.")
    return tuple(known[name] for name in dict.fromkeys(names)) or CELLS
