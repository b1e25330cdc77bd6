"""Asks: what the page may send. Anything else in a body is refused, and nothing is converted."""

from typing import Annotated, Any, Literal

from fastapi import Body
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from airflow_bookmarks.core.job_state import state_text
from airflow_bookmarks.core.rules.audit import MAX_REASON
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.changes.sharing import Ownership

_Number = Annotated[int, Field(ge=0, lt=10**10)]
_RunNumber = Annotated[int, Field(ge=1, lt=10**10)]
_Name = Annotated[str, Field(min_length=1, max_length=250)]
_Names = Annotated[list[_Name], Field(min_length=1, max_length=1000)]
_Reason = Annotated[str, Field(min_length=1, max_length=MAX_REASON)]


class BaseRequest(BaseModel):
    """What every body is."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ResetSpec(BaseRequest):
    """Back to before the first run."""

    kind: Literal["reset"]
    clean: bool = False
    contexts: _Names | None = None

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("reset", clean=self.clean, contexts=None if self.contexts is None else tuple(self.contexts))


class RewindSpec(BaseRequest):
    """Back to after an earlier run, by its number; in a preview also the run that a point names in the job's history.

    A point is a run id, a time (the last run committed by then) or `watermark:VALUE` (the last run at or below it). The
    `to_run` of the preview is the number of that run, which the change takes.
    """

    kind: Literal["rewind"]
    to_run: _RunNumber | Annotated[str, Field(min_length=1, max_length=1000)]
    clean: bool = False
    contexts: _Names | None = None

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        contexts = None if self.contexts is None else tuple(self.contexts)
        return Change("rewind", str(self.to_run), contexts, clean=self.clean)


class ShardedRewindSpec(BaseRequest):
    """Each virtual shard back to after a run: the last one that an execution made there, or that came by a time."""

    kind: Literal["rewind"]
    to: Annotated[str, Field(min_length=1, max_length=1000)]
    clean: bool = False
    contexts: _Names | None = None

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        contexts = None if self.contexts is None else tuple(self.contexts)
        return Change("rewind", self.to, contexts, clean=self.clean)


class SetSpec(BaseRequest):
    """One context to a position that no run left: "now", a time, or the number of a run of an upstream."""

    kind: Literal["set"]
    ctx: _Name
    value: Annotated[str, Field(min_length=1, max_length=1000)] | _Number

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("set", ctx=self.ctx, value=str(self.value))


class SetStateSpec(BaseRequest):
    """One value of `job.state` to any JSON value; null removes it."""

    kind: Literal["set-state"]
    state: _Name
    value: JsonValue

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("set-state", state=self.state, value=state_text(self.state, self.value))


class UndoSpec(BaseRequest):
    """As before the last change."""

    kind: Literal["undo"]

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("undo")


class DeleteSpec(BaseRequest):
    """No bookmark any more: the next run reads everything."""

    kind: Literal["delete"]
    clean: bool = False

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("delete", clean=self.clean)


class UnprotectSpec(BaseRequest):
    """No protection any more; only as a request."""

    kind: Literal["unprotect"]

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("unprotect")


class ShareSpec(BaseRequest):
    """Another DAG may run the job too; it stays its owner's."""

    kind: Literal["share"]
    dag: _Name

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("share", dag=self.dag)


class UnshareSpec(BaseRequest):
    """A DAG with which the job was shared may run it no more."""

    kind: Literal["unshare"]
    dag: _Name

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("unshare", dag=self.dag)


class HandOverSpec(BaseRequest):
    """The job belongs to another DAG; `renamed`: to its owner under a new name, and the old name is asked no more."""

    kind: Literal["hand-over"]
    dag: _Name
    renamed: bool

    def change(self) -> Change:
        """Return it as the change that it asks for."""
        return Change("hand-over", dag=self.dag, renamed=self.renamed)


class Confirmed(BaseRequest):
    """What a person says to be sure: why, the version that was looked at, and the job's name once more."""

    reason: _Reason
    expected_version: _Number
    confirm: str


class Forced(Confirmed):
    """The same, where a run may be in the way; `force` fences it."""

    force: bool = False


class OwnerSeen(Confirmed):
    """A confirmation that also states the ownership that the preview showed (`seen`)."""

    expected_owner: _Name | None
    expected_shared_with: Annotated[list[_Name], Field(max_length=1000)]

    @property
    def seen(self) -> Ownership:
        """Whose the job was when it was looked at."""
        return Ownership(self.expected_version, self.expected_owner, tuple(sorted(self.expected_shared_with)))


class Share(ShareSpec, OwnerSeen):
    """A share that is meant."""


class Unshare(UnshareSpec, OwnerSeen):
    """An unshare that is meant."""


class HandOver(HandOverSpec, OwnerSeen):
    """A hand-over that is meant."""


class ShareRequest(ShareSpec, OwnerSeen):
    """A share that somebody else is to approve."""


class HandOverRequest(HandOverSpec, OwnerSeen):
    """A hand-over that somebody else is to approve."""


class Reset(ResetSpec, Forced):
    """A reset that is meant."""


class Rewind(RewindSpec, Forced):
    """A rewind that is meant."""

    to_run: _RunNumber


class ShardedRewind(ShardedRewindSpec, Forced):
    """A rewind of a sharded job that is meant."""


class Set(SetSpec, Forced):
    """A set that is meant."""


class SetState(SetStateSpec, Forced):
    """A set-state that is meant."""


class Undo(UndoSpec, Forced):
    """An undo that is meant."""


class DeleteJob(DeleteSpec, Forced):
    """A deletion that is meant."""


class ResetRequest(ResetSpec, Confirmed):
    """A reset that somebody else is to approve."""


class RewindRequest(RewindSpec, Confirmed):
    """A rewind that somebody else is to approve."""

    to_run: _RunNumber


class SetRequest(SetSpec, Confirmed):
    """A set that somebody else is to approve."""


class SetStateRequest(SetStateSpec, Confirmed):
    """A set-state that somebody else is to approve."""


class UndoRequest(UndoSpec, Confirmed):
    """An undo that somebody else is to approve."""


class DeleteRequest(DeleteSpec, Confirmed):
    """A deletion that somebody else is to approve."""


class UnprotectRequest(UnprotectSpec, Confirmed):
    """The end of a protection, which somebody else is to approve."""


# Said of the body itself: FastAPI takes no notice of the discriminator of a type within it, and then a body that is
# wrong is answered with what is wrong with it as each of the kinds.
BY_KIND: Any = Body(discriminator="kind")
ChangeSpec = ResetSpec | RewindSpec | SetSpec | SetStateSpec | UndoSpec | DeleteSpec
ChangeBody = Reset | Rewind | Set | SetState | Undo | DeleteJob
ShardedSpec = ResetSpec | ShardedRewindSpec
ShardedBody = Reset | ShardedRewind
OwnerSpec = ShareSpec | UnshareSpec | HandOverSpec
OwnerBody = Share | Unshare | HandOver
RequestBody = (
    ResetRequest
    | RewindRequest
    | SetRequest
    | SetStateRequest
    | UndoRequest
    | DeleteRequest
    | UnprotectRequest
    | ShareRequest
    | HandOverRequest
)


class Reason(BaseRequest):
    """Why."""

    reason: _Reason


class Unlock(Reason):
    """Take a job from a run whose driver is known to be dead; `held_by` is its run id, as it was looked at."""

    held_by: Annotated[str, Field(min_length=1, max_length=1000)]
    confirm: str


class Approval(BaseRequest):
    """A request is to be carried out; `force` fences a run that is in the way."""

    force: bool = False
