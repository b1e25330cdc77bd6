"""Who asks, and what they may do. The only file that reaches into Airflow's private API for that.

| the job | to look at it | to change it |
|---|---|---|
| was last run by a DAG that this Airflow has | read on that DAG | edit on the runs of that DAG |
| by no DAG, or by one that this Airflow doesn't have | read on assets | edit on assets |

Which DAG a job belongs to is what its own record in the store says, and never what a request says.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from fastapi import Depends
from sqlalchemy import select

from airflow_bookmarks.core.identity import Identity


@dataclass(frozen=True, slots=True)
class Sight:
    """Which jobs somebody may look at, by the DAG that each belongs to; found out once for a whole list."""

    readable_dags: frozenset[str]
    known_dags: frozenset[str]
    may_read_assets: bool

    def sees(self, dag_id: object) -> bool:
        """Whether a job that belongs to this DAG (what its record says; None: to none) may be looked at."""
        if not isinstance(dag_id, str) or dag_id not in self.known_dags:
            return self.may_read_assets
        return dag_id in self.readable_dags


@dataclass(frozen=True, slots=True)
class Person:
    """A logged-in user. All methods may ask Airflow's database: they are called in threads."""

    user: BaseUser

    @property
    def name(self) -> str:
        """The name under which changes are noted."""
        return self.user.get_name()

    @property
    def identity(self) -> Identity:
        """The user as one who asks for a change or approves it: Airflow vouches for the name.

        With `[fab] auth_role_public` those who are not logged in have rights too, under one name that is nobody's.
        """
        return Identity(self.name, not getattr(self.user, "is_anonymous", False), "airflow")

    def may_read(self, dag_id: str | None) -> bool:
        """Whether a job that belongs to this DAG (None: to none) may be looked at."""
        if dag_id is None or not _is_known(dag_id):
            return self.may_read_assets()
        return bool(
            get_auth_manager().is_authorized_dag(method="GET", details=_details(dag_id), user=self.user),
        )

    def may_change(self, dag_id: str | None) -> bool:
        """Whether a job that belongs to this DAG (None: to none) may be reset, rewound and so on.

        Who may clear a run of the DAG makes its tasks run again, and may make them read again.
        """
        if dag_id is None or not _is_known(dag_id):
            return self.may_change_assets()
        manager = get_auth_manager()
        details = _details(dag_id)
        return bool(
            manager.is_authorized_dag(method="GET", details=details, user=self.user)
            and manager.is_authorized_dag(
                method="PUT", access_entity=DagAccessEntity.RUN, details=details, user=self.user
            )
        )

    def may_read_assets(self) -> bool:
        """Whether jobs that belong to no DAG may be looked at."""
        return self._may_assets("GET")

    def may_change_assets(self) -> bool:
        """Whether jobs that belong to no DAG may be changed."""
        return self._may_assets("PUT")

    def sight(self) -> Sight:
        """Return which jobs may be looked at, by one question to the auth manager for all DAGs."""
        readable = get_auth_manager().get_authorized_dag_ids(user=self.user, method="GET")
        with create_session() as session:
            known = session.scalars(select(DagModel.dag_id)).all()
        return Sight(frozenset(readable), frozenset(known), self.may_read_assets())

    def _may_assets(self, method: Literal["GET", "PUT"]) -> bool:
        return bool(get_auth_manager().is_authorized_asset(method=method, user=self.user))


async def logged_in(user: Annotated[BaseUser, Depends(get_user)]) -> Person:
    """Return who is logged in; a dependency of every route.

    Raises:
        HTTPException: 401 without a login, 403 with a token that is none.
    """
    return Person(user)


LoggedIn = Annotated[Person, Depends(logged_in)]


def _is_known(dag_id: str) -> bool:
    with create_session() as session:
        return session.scalar(select(DagModel.dag_id).where(DagModel.dag_id == dag_id)) is not None


def _details(dag_id: str) -> DagDetails:
    return DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
