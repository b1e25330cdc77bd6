"""The statements of one publish into Redshift, in the order in which its transaction runs them.

    LOCK, UPDATE                   the token; see `token`
    statements of the script       preactions
    creation                       the target, unless it is there
    staging, copy, added           the rows, by a temporary table with the columns of the files
    statements of the script       postactions
    UPDATE                         how many rows that were

They hold no value of a row and no secret: the files are read under a role, which Redshift itself assumes.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.copy.manifest import object_url
from airflow_bookmarks.core.database.dialects.quoting import plain_text, quoted
from airflow_bookmarks.core.database.publish_sql import names_of
from airflow_bookmarks.core.database.script import NO_SCRIPT, PublishScript
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from airflow_bookmarks.core.database.copy.columns import CopyColumn
    from airflow_bookmarks.core.database.sink_table import SinkTable

DEFAULT_ROLE = "default"  # that of the cluster or namespace

_ROLE = r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+"
_ROLES = re.compile(rf"{_ROLE}(,{_ROLE})*", re.ASCII)
_INVALID = re.compile(r"ACCEPTINVCHARS(\s+(AS\s+)?'[^'\\\s]')?(?!\S)", re.ASCII | re.IGNORECASE)
# What changes nothing here: texts are not parsed, and the table that is loaded is gone after the publish.
_WITHOUT_EFFECT = re.compile(
    r"((COMPUPDATE|STATUPDATE)(\s+(ON|OFF|TRUE|FALSE|PRESET))?|(DATE|TIME)FORMAT\s+(AS\s+)?'[^']*'|FILLRECORD)(?!\S)",
    re.ASCII | re.IGNORECASE,
)


def role_of(given: str | None) -> str:
    """Return the role under which Redshift reads the files: an ARN, several with commas for a chain, or the default.

    Raises:
        OptionError: it is something else. The text is not repeated: it may be a key.

    Example:
        >>> role_of("arn:aws:iam::123456789012:role/load"), role_of(None)
        ('arn:aws:iam::123456789012:role/load', 'default')
    """
    role = (given or DEFAULT_ROLE).strip()
    if role != DEFAULT_ROLE and not _ROLES.fullmatch(role):
        raise OptionError(
            "the role by which Redshift reads files is no ARN of a role (arn:aws:iam::<account>:role/<name>). Nothing "
            "was written or committed. Give one as aws_iam_role, or leave it out for the default role of the cluster."
        )
    return role


def options_of(given: str | None) -> str:
    """Return those of Glue's `extracopyoptions` that have an effect on a COPY of Parquet.

    Raises:
        OptionError: one is not known for Parquet. The text is not repeated: it may hold a key.

    Example:
        >>> options_of("STATUPDATE ON acceptinvchars as '?'")
        "ACCEPTINVCHARS AS '?'"
    """
    left, kept = (given or "").strip(), ""
    while left:
        found = _INVALID.match(left) or _WITHOUT_EFFECT.match(left)
        if found is None:
            raise OptionError(
                "extracopyoptions holds something that a COPY of Parquet does not take, or by which rows would be "
                "changed or left out. Nothing was written or committed. Of these options ACCEPTINVCHARS is used; "
                "COMPUPDATE, STATUPDATE, DATEFORMAT, TIMEFORMAT and FILLRECORD are allowed, without effect; leave the "
                "others out, and change the rows in the frame."
            )
        if found.re is _INVALID:
            mark = re.search(r"'.'", found[0])
            kept = f"ACCEPTINVCHARS AS {mark[0]}" if mark else "ACCEPTINVCHARS"
        left = left[found.end() :].strip()
    return kept


@dataclass(frozen=True, slots=True)
class CopyLoad:
    """What a publish loads, and where to.

    `manifest` is the path of the manifest; None: there are no rows, which a COPY would refuse. `role` and `options` are
    what `role_of` and `options_of` return; `script` runs before and after.
    """

    table: SinkTable
    columns: tuple[CopyColumn, ...]
    manifest: str | None
    role: str = DEFAULT_ROLE
    options: str = ""
    script: PublishScript = NO_SCRIPT

    @property
    def digest(self) -> str:
        """What tells it from any other; the token row keeps it, and a publish runs what it tells alone."""
        columns = [[each.name, each.kind] for each in self.columns]
        told = [*self.table.parts], columns, self.manifest, self.role, self.options, self.script.digest
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def creation(self) -> str:
        """Return the statement that makes the target unless it is there."""
        columns = ", ".join(f"{quoted('redshift', each.name)} {each.made}" for each in self.columns)
        return f"CREATE TABLE IF NOT EXISTS {self.table.sql('redshift')} ({columns})"

    def staging(self, name: str) -> str:
        """Return the statement that makes the temporary table, which has the columns of the files and no others."""
        columns = ", ".join(f"{quoted('redshift', each.name)} {each.loaded}" for each in self.columns)
        return f"CREATE TEMP TABLE {quoted('redshift', name)} ({columns})"

    def copy(self, name: str) -> str:
        """Return the statement that loads the files into the temporary table.

        Raises:
            OptionError: the manifest has a path that no literal of a COPY can name.
        """
        url = object_url(self.manifest or "")
        if "\\" in url:
            raise OptionError(f"the folder of {url!r} has a backslash in its name. Choose another redshift_tmp_dir.")
        role = "default" if self.role == DEFAULT_ROLE else plain_text(self.role)
        parts = (
            f"COPY {quoted('redshift', name)} FROM {plain_text(url)} IAM_ROLE {role} FORMAT AS PARQUET MANIFEST",
            *([self.options] if self.options else []),
        )
        return " ".join(parts)

    def count(self, name: str) -> str:
        """Return the query for how many rows the temporary table has."""
        return f"SELECT COUNT(*) FROM {quoted('redshift', name)}"

    def rehearsal(self, name: str) -> list[str]:
        """Return the statements that bring no rows into a target that is there: what would refuse them does so now."""
        return [self.staging(name), f"{self.added(name)} WHERE 1 = 0", f"DROP TABLE {quoted('redshift', name)}"]

    def added(self, name: str) -> str:
        """Return the statement that appends the rows of the temporary table to the target, by the names of columns."""
        names = names_of("redshift", [each.name for each in self.columns])
        values = ", ".join(each.value for each in self.columns)
        return f"INSERT INTO {self.table.sql('redshift')} ({names}) SELECT {values} FROM {quoted('redshift', name)}"
