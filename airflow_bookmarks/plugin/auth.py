"""Authenticate the user and check permissions. The only module that uses Airflow's private API for that.

| the job | to look at it | to change it |
|---|---|---|
| belongs, or ever belonged, to DAGs that this Airflow has | read on each of them | edit on the runs of each of them |
| to one that this Airflow doesn't have | read on all DAGs | edit on the runs of all DAGs |
| never belonged to any | read on assets | edit on assets |

With `[bookmarks] jobs_of_unknown_dags = assets`, the rights on assets are enough for a DAG that this Airflow doesn't
have. The job's own record in the store, and never a request, says to which DAGs the job belongs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import conf
from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from fastapi import Depends, Request
from sqlalchemy import select

from airflow_bookmarks.airflow_compat import team_of
from airflow_bookmarks.core.errors import StoreAccessError
from airflow_bookmarks.core.rules.owner import owners_in
from airflow_bookmarks.core.text.identity import Identity

Rights = tuple[tuple[str, ...] | None, ...]
"""For each of several bookmarks the DAGs that own or owned it; None where that can\'t be read."""

UNKNOWN_DAGS, UNKNOWN_VALUES = "jobs_of_unknown_dags", ("all_dags", "assets")

# No DAG can have this id, so whoever has a right on it has it on all DAGs. Asked without an id, FAB says yes to anybody
# who may read a single one.
EVERY_DAG = DagDetails(id="(every DAG)")


@dataclass(frozen=True, slots=True)
class UserScope:
    """The jobs that a user may look at, by the DAG that each belongs to; determined once for a whole list."""

    readable_dags: frozenset[str]
    known_dags: frozenset[str]
    may_read_assets: bool
    may_read_unknown: bool
    may_see_the_store: bool

    def sees(self, entry: Mapping[str, object] | None) -> bool:
        """Whether a job may be looked at that has this index entry (None: it has none)."""
        owners = owners_in(entry)
        return all(map(self._sees_dag, owners)) if owners else self.may_read_assets

    def _sees_dag(self, dag_id: str) -> bool:
        return dag_id in self.readable_dags if dag_id in self.known_dags else self.may_read_unknown


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
        """The user as the requester or approver of a change: Airflow vouches for the name.

        With `[fab] auth_role_public`, users without a login have rights too, under one shared name.
        """
        return Identity(self.name, not getattr(self.user, "is_anonymous", False), "airflow")

    def may_read(self, owners: Sequence[str]) -> bool:
        """Whether a job may be looked at that these DAGs own or owned (none: it never had an owner)."""
        return all(map(self._may_read_dag, owners)) if owners else self.may_read_assets()

    def may_change(self, owners: Sequence[str]) -> bool:
        """Whether a job may be reset, rewound and so on that these DAGs own or owned (none: it never had an owner).

        Who may clear a run of a DAG makes its tasks run again, and may make them read again.
        """
        return all(map(self._may_change_dag, owners)) if owners else self.may_change_assets()

    def may_read_each(self, rights: Rights) -> bool:
        """Whether the user may view every one of several jobs, given the owner DAGs of each."""
        return all(self.may_read_unknown() if owners is None else self.may_read(owners) for owners in rights)

    def may_change_each(self, rights: Rights) -> bool:
        """Whether the user may change every one of several jobs, given the owner DAGs of each."""
        return all(self._may_change_unknown() if owners is None else self.may_change(owners) for owners in rights)

    def may_change_then(self, owners: Sequence[str], dag_id: str) -> bool:
        """Whether the user could still change a job once these DAGs own or owned it, among them `dag_id`.

        For a DAG that the user may not look at, the answer is the same as for a missing DAG, so it reveals nothing.
        """
        return (self.sees_dag(dag_id) or self._may_read(EVERY_DAG)) and self.may_change(owners)

    def sees_dag(self, dag_id: str) -> bool:
        """Whether this Airflow has a DAG of that id, and the user may look at it."""
        return _is_known(dag_id) and self._may_read(_details(dag_id))

    def may_read_unknown(self) -> bool:
        """Whether jobs of a DAG that this Airflow doesn't have may be looked at."""
        return self.may_read_assets() if _unknown_are_open() else self._may_read(EVERY_DAG)

    def may_see_the_store(self) -> bool:
        """Whether an error may say where the state lies and what is wrong with it: to those who see connections."""
        return bool(get_auth_manager().is_authorized_connection(method="GET", user=self.user))

    def _may_read_dag(self, dag_id: str) -> bool:
        return self._may_read(_details(dag_id)) if _is_known(dag_id) else self.may_read_unknown()

    def _may_change_dag(self, dag_id: str) -> bool:
        return self._may_change(_details(dag_id)) if _is_known(dag_id) else self._may_change_unknown()

    def _may_change_unknown(self) -> bool:
        return self.may_change_assets() if _unknown_are_open() else self._may_change(EVERY_DAG)

    def _may_read(self, details: DagDetails) -> bool:
        return bool(get_auth_manager().is_authorized_dag(method="GET", details=details, user=self.user))

    def _may_change(self, details: DagDetails) -> bool:
        return self._may_read(details) and bool(
            get_auth_manager().is_authorized_dag(
                method="PUT", access_entity=DagAccessEntity.RUN, details=details, user=self.user
            )
        )

    def may_read_assets(self) -> bool:
        """Whether jobs that belong to no DAG may be looked at."""
        return self._may_assets("GET")

    def may_change_assets(self) -> bool:
        """Whether jobs that belong to no DAG may be changed."""
        return self._may_assets("PUT")

    def scope(self) -> UserScope:
        """Return which jobs may be looked at, by one question to the auth manager for all DAGs."""
        readable = get_auth_manager().get_authorized_dag_ids(user=self.user, method="GET")
        with create_session() as session:
            known = session.scalars(select(DagModel.dag_id)).all()
        return UserScope(
            frozenset(readable),
            frozenset(known),
            self.may_read_assets(),
            self.may_read_unknown(),
            self.may_see_the_store(),
        )

    def _may_assets(self, method: Literal["GET", "PUT"]) -> bool:
        return bool(get_auth_manager().is_authorized_asset(method=method, user=self.user))


async def logged_in(request: Request, user: Annotated[BaseUser, Depends(get_user)]) -> Person:
    """Return the logged-in user; a dependency of every route. What errors reveal depends on this user.

    Raises:
        HTTPException: 401 without a login, 403 with a token that is none.
    """
    request.state.person = Person(user)
    return Person(user)


LoggedIn = Annotated[Person, Depends(logged_in)]


def _unknown_are_open() -> bool:
    """Whether a DAG that this Airflow doesn't have counts as none: `[bookmarks] jobs_of_unknown_dags`.

    Raises:
        StoreAccessError: the setting says something else; no fault of the request.
    """
    value = conf.get("bookmarks", UNKNOWN_DAGS, fallback=UNKNOWN_VALUES[0]) or UNKNOWN_VALUES[0]
    if value not in UNKNOWN_VALUES:
        raise StoreAccessError(
            f"[bookmarks] {UNKNOWN_DAGS} = {value!r} in Airflow's configuration: expected one of "
            f"{', '.join(UNKNOWN_VALUES)}. Nothing was read or changed. Correct it, and start the API server anew."
        )
    return bool(value == "assets")


def _is_known(dag_id: str) -> bool:
    with create_session() as session:
        return session.scalar(select(DagModel.dag_id).where(DagModel.dag_id == dag_id)) is not None


def _details(dag_id: str) -> DagDetails:
    return DagDetails(id=dag_id, **team_of(dag_id))
