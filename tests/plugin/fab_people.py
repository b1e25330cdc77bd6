"""Make DAGs, roles and people in the Airflow of this environment, which has the FAB auth manager.

    python -m tests.plugin.fab_people

Rights on the DAG `flights` are given by an administrator, those on `nights` by the DAG itself, as its `access_control`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_LOOK, _EDIT = ("can_read", "DAG:flights"), ("can_edit", "DAG:flights")
# A DAG can't give away the right to edit its runs. This is one on all runs, and ends where that on the DAG does.
_EDIT_RUNS = ("can_edit", "DAG Runs")
_ROLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Flights": (_LOOK, _EDIT, _EDIT_RUNS),
    "Flights, by their runs": (_LOOK, _EDIT, ("can_edit", "DAG Run:flights")),
    "Flights, without runs": (_LOOK, _EDIT),
    "Runs, without flights": (_LOOK, _EDIT_RUNS),
    "Nights": (_EDIT_RUNS,),
    "Plugins": (("can_read", "Plugins"),),
}
_ACCESS: Mapping[str, Any] = {"flights": None, "nights": {"Nights": {"DAGs": {"can_read", "can_edit"}}}}
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "ada": ("Admin",),
    "otto": ("Op",),
    "uma": ("User",),
    "vera": ("Viewer",),
    "pia": ("Public",),
    "flo": ("Flights",),
    "rae": ("Flights, by their runs",),
    "edo": ("Flights, without runs",),
    "wim": ("Runs, without flights",),
    "nia": ("Nights",),
    "vip": ("Viewer", "Plugins"),
}


def password_of(name: str) -> str:
    """Return the password of somebody."""
    return f"password of {name}"


def main() -> None:
    """Make roles first, as a DAG may name only roles that there are."""
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder
    from airflow.providers_manager import ProvidersManager

    # As `airflow` itself does before a command: some versions don't do so for who asks for FAB's settings.
    ProvidersManager().initialize_providers_configuration()  # type: ignore[no-untyped-call, unused-ignore]
    with get_application_builder() as builder:  # type: ignore[no-untyped-call, unused-ignore]
        security: Any = builder.sm
        security.sync_roles()
        for role, rights in _ROLES.items():
            made = security.add_role(role)
            for action, resource in rights:
                security.add_permission_to_role(made, security.create_permission(action, resource))
        for name, roles in PEOPLE.items():
            held = [security.find_role(role) for role in roles]
            address = f"{name}@airflow.example"
            if not security.add_user(name, name, "of the tests", address, held, password=password_of(name)):
                raise RuntimeError(f"FAB did not make the user {name!r}; its log says why")
    _make_dags()


def _make_dags() -> None:
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.sdk import DAG

    from tests.airflow.compat import DagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]
    bag = DagBag(collect_dags=False)
    for dag_id, access in _ACCESS.items():
        bag.bag_dag(DAG(dag_id, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC), access_control=access))
    sync_bag_to_db(bag, "dags-folder", None)


if __name__ == "__main__":
    main()
