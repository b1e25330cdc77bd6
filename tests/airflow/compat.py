"""What tests need of Airflow that lies elsewhere in some versions, and the features that some don't have.

A test of what is missing is switched off by the feature; its reason is listed in docs/reference/compatibility.md.
"""

from __future__ import annotations

import importlib.util
import json
from importlib.resources import files
from inspect import signature
from typing import TYPE_CHECKING, Any

import pytest
from airflow.api_fastapi.core_api.security import get_user
from airflow.sdk.definitions.param import ParamsDict

from airflow_bookmarks import airflow_compat

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.sdk.exceptions import AirflowException, AirflowRescheduleException, TaskDeferralTimeout
    from airflow.serialization.serialized_objects import DagSerialization
    from sqlalchemy.orm import Session
else:
    try:
        from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    except ImportError:
        from airflow.models import dagbag
        from airflow.models.dagbag import DagBag

        def sync_bag_to_db(bag: Any, bundle_name: str, bundle_version: str | None) -> None:
            """Serialise the DAGs of a bag into the database."""
            if hasattr(dagbag, "sync_bag_to_db"):
                dagbag.sync_bag_to_db(bag, bundle_name, bundle_version)
                return
            for dag in bag.dags.values():
                # Asked also of a DAG that stands in no file.
                dag.relative_fileloc = dag.relative_fileloc or "in_no_file.py"
            bag.sync_to_db(bundle_name, bundle_version)

    try:
        from airflow.sdk.exceptions import AirflowException, AirflowRescheduleException, TaskDeferralTimeout
    except ImportError:
        from airflow.exceptions import AirflowException, AirflowRescheduleException, TaskDeferralTimeout
    try:
        from airflow.serialization.serialized_objects import DagSerialization
    except ImportError:
        from airflow.serialization.serialized_objects import SerializedDAG as DagSerialization

__all__ = [
    "HAS_APPROVAL",
    "AirflowException",
    "AirflowRescheduleException",
    "DagBag",
    "DagSerialization",
    "TaskDeferralTimeout",
    "bag_of",
    "execution_api_app",
    "mount_plugins",
    "needs_bearer_login",
    "needs_connection_form",
    "needs_deferral",
    "needs_pages",
    "needs_provider_commands",
    "needs_pyspark_operator",
    "stored_dag",
    "sync_bag_to_db",
    "take_auth_manager",
]

# A DAG that asks for its params can wait for a person where Airflow's operator takes none of them for its own.
HAS_APPROVAL = importlib.util.find_spec("airflow.models.hitl") is not None and hasattr(
    ParamsDict, "filter_params_by_source"
)

needs_deferral = pytest.mark.skipif(
    not airflow_compat.triggerer_survives_requests(),
    reason="this Airflow's triggerer does not survive triggers that ask for a connection: sensors are not deferred",
)
needs_pages = pytest.mark.skipif(
    not airflow_compat.shows_plugin_pages(), reason="this Airflow's UI shows no pages of plugins"
)
needs_pyspark_operator = pytest.mark.skipif(
    not airflow_compat.has_pyspark_operator(), reason="this Spark provider has no PySparkOperator: no @task.bookmark"
)

_PROVIDER_INFO = json.loads((files("airflow") / "provider_info.schema.json").read_text())["properties"]
needs_provider_commands = pytest.mark.skipif(
    "cli" not in _PROVIDER_INFO, reason="this Airflow takes no commands from providers: no `airflow bookmarks`"
)
needs_connection_form = pytest.mark.skipif(
    "hook-name" not in _PROVIDER_INFO["connection-types"]["items"]["properties"],
    reason="this Airflow takes no form of a connection from provider info: its fields are the extra, as JSON",
)
needs_bearer_login = pytest.mark.skipif(
    "bearer_credentials" not in signature(get_user).parameters,
    reason="this Airflow's API takes a login from a header alone, and names it otherwise in documents",
)


def bag_of(folder: str, bundle: str) -> DagBag:
    """Read the DAGs of a folder; where a bag knows its bundle, it is this one."""
    names: dict[str, Any] = {"bundle_name": bundle} if "bundle_name" in signature(DagBag).parameters else {}
    return DagBag(dag_folder=folder, **names)


def stored_dag(dag_id: str, session: Session) -> Any:
    """Return a DAG as the scheduler has it: from the database."""
    from airflow.models import dagbag
    from airflow.models.serialized_dag import SerializedDagModel

    if hasattr(dagbag, "DBDagBag"):
        return dagbag.DBDagBag().get_latest_version_of_dag(dag_id, session=session)
    return SerializedDagModel.get_dag(dag_id, session=session)


def execution_api_app() -> Any:
    """Return the app that workers talk to, without its authentication."""
    from airflow.api_fastapi.common import dagbag
    from airflow.api_fastapi.execution_api.app import InProcessExecutionAPI

    app = InProcessExecutionAPI().app
    if not hasattr(app.state, "dag_bag"):  # Airflow 3.0 leaves it out
        app.state.dag_bag = dagbag.create_dag_bag()
    return app


def mount_plugins(patch: pytest.MonkeyPatch, apps: list[Any]) -> None:
    """Let the API server that is made next mount these apps alone."""
    from airflow import plugins_manager

    if hasattr(plugins_manager, "get_fastapi_plugins"):
        patch.setattr(plugins_manager, "get_fastapi_plugins", lambda: (apps, []))
    else:
        patch.setattr(plugins_manager, "initialize_fastapi_plugins", lambda: None)
        patch.setattr(plugins_manager, "fastapi_apps", apps)
        patch.setattr(plugins_manager, "fastapi_root_middlewares", [])


def take_auth_manager(patch: pytest.MonkeyPatch, manager: Any) -> None:
    """Make an auth manager the one that this process asks."""
    from airflow.api_fastapi import app

    if hasattr(app, "_AuthManagerState"):
        patch.setattr(app._AuthManagerState, "instance", manager)
    else:
        patch.setattr(app, "auth_manager", manager)
