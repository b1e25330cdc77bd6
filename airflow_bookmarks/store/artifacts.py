"""Artifacts: folders that belong to a position, such as a snapshot of a table or the spool of a queue.

    <state_uri>/<namespace>/artifacts/<table>-<12 hexadecimal digits>/<job>/<ULID>

A source asks for the URI of a new one (`PlanInput.new_artifact`), fills it, and names it in the position that its plan
leads to (`Position.artifacts`). The commit stores the URI with the context, in the head and on the run. A collection
(`lifecycle.maintenance.artifacts`) removes those that no item of the job names, once they are older than any run lasts;
it lists them, and never follows what state names. So state that was tampered with may keep a folder, and removes none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import MisuseError, OptionError, SourceError, StoreAccessError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.run import ContextState
    from airflow_bookmarks.store.blobs import BlobStore

_ULID = re.compile("[0-9A-HJKMNP-TV-Z]{26}")


class ArtifactStore:
    """The artifacts of one namespace of one table; `blobs` knows where they lie, and how that is reached."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    def new(self, job: str, ulid: str) -> str:
        """Return the URI of a folder that is not there yet, for an artifact of a job.

        Raises:
            OptionError: the store has no `state_uri`, so there is no place for it.
        """
        folder = self._blobs.artifacts_folder
        if folder is None:
            raise OptionError(
                f"job {job!r}: its source keeps files that belong to its position, and the store has no state_uri for "
                "them. Nothing was read or changed. Name one: see 'Store address and large state'."
            )
        return f"{folder}/{job}/{ulid}"

    def check(self, job: str, contexts: Mapping[str, ContextState], base: Mapping[str, ContextState]) -> None:
        """Make sure that the artifacts which a commit adds to those of `base` were made for this job.

        Raises:
            MisuseError: one lies elsewhere, where no collection finds it and an export does not know it.
        """
        for ctx, state in contexts.items():
            known = base[ctx].artifacts if ctx in base else ()
            for uri in state.artifacts:
                if uri not in known and not self._is_own(job, uri):
                    raise MisuseError(
                        f"job {job!r}, context {ctx!r}: its position names the artifact {uri!r}, which was not made "
                        "for it. Nothing was committed. A source takes the folder that PlanInput.new_artifact gives."
                    )

    def _is_own(self, job: str, uri: str) -> bool:
        # Whatever lies before it: a folder has many spellings, and a run may be taken over after state_uri has moved.
        folder, _, name = uri.rpartition("/")
        return folder.endswith(f"{self._blobs.artifacts_tail}/{job}") and _ULID.fullmatch(name) is not None

    def jobs(self) -> Sequence[str]:
        """Return the keys of the jobs that have artifacts under the present `state_uri`.

        Raises:
            StoreAccessError: they can't be listed from here.
        """
        return self._listed(self._blobs.artifacts_folder)

    def of_job(self, job: str) -> Sequence[str]:
        """Return the names (ULIDs) of the artifacts of a job; other folders beside them are none.

        Raises:
            StoreAccessError: they can't be listed from here.
        """
        folder = self._blobs.artifacts_folder
        found = self._listed(None if folder is None else f"{folder}/{job}")
        return [name for name in found if _ULID.fullmatch(name)]

    def missing(self, job: str, uris: Iterable[str]) -> list[str]:
        """Return those of some artifacts of a job that lie under the present `state_uri` by their URI, and do not.

        Raises:
            StoreAccessError: they can't be listed from here.
        """
        folder = f"{self._blobs.artifacts_folder}/{job}"
        there = {f"{folder}/{name}" for name in self.of_job(job)}
        return sorted(uri for uri in uris if uri.rpartition("/")[0] == folder and uri not in there)

    def _listed(self, folder: str | None) -> Sequence[str]:
        if folder is None:
            return []
        try:
            return self._blobs.files.folders(folder)
        except (OSError, SourceError) as error:
            raise StoreAccessError(f"the artifacts in {folder} can't be listed: {error}. None was removed.") from error

    def remove(self, job: str, name: str) -> None:
        """Remove an artifact of a job that nothing names any more.

        Raises:
            StoreAccessError: it can't be removed from here.
        """
        uri = self.new(job, name)
        try:
            self._blobs.files.remove(uri)
        except (OSError, SourceError) as error:
            raise StoreAccessError(
                f"the artifact {uri}, which nothing names any more, can't be removed: {error}. It stays."
            ) from error
