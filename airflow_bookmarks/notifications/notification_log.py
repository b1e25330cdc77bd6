"""The log of what was reported: one Airflow Variable per notifier and job, or per watch of all jobs of a connection. It
exists only while something is wrong.

It is in Airflow and not in the state table: two Airflows that share a table each notify their own people, and the state
of a job does not grow with its notifiers. Deleting the Variable repeats the notification.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from airflow.sdk import Variable

TOLD = "bookmarks.told"
WATCHED = "bookmarks.watched"
_MAX_KEY = 250  # characters of a Variable's key
_DESCRIPTION = "The problems with bookmarks that were reported. Delete this Variable to be notified again."


@dataclass(frozen=True, slots=True)
class NotificationRecord:
    """What the notifier `name` has reported of `about`: troubles by key.

    `about` is a job, and for a watch (`prefix`: WATCHED) the connection whose jobs it watches; the keys are jobs then.
    """

    name: str
    about: str
    prefix: str = TOLD

    @property
    def variable(self) -> str:
        """The key of the Variable."""
        key = f"{self.prefix}.{self.name}.{self.about}"
        if len(key) <= _MAX_KEY:
            return key
        digest = hashlib.blake2b(f"{self.name}\0{self.about}".encode(), digest_size=16).hexdigest()
        return f"{self.prefix}.{digest}"

    def read(self) -> dict[str, str]:
        """Return what was reported; empty if nothing was wrong, or the Variable holds something else."""
        text = Variable.get(self.variable, default=None)
        try:
            found = json.loads(text or "{}")
        except ValueError:
            return {}
        return {str(key): str(state) for key, state in found.items()} if isinstance(found, dict) else {}

    def write(self, troubles: Mapping[str, str]) -> None:
        """Store what was reported; without trouble, the Variable is deleted."""
        if troubles:
            Variable.set(self.variable, json.dumps(troubles, sort_keys=True), description=_DESCRIPTION)
        else:
            Variable.delete(self.variable)
