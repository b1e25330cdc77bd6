"""Terms of a change: who asks for it, why, and which conditions must hold; and the event that records it."""

from __future__ import annotations

import unicodedata
from typing import Required, TypeAlias, TypedDict

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.escaping import check_typed_text

MAX_REASON = 2000

AuditValue: TypeAlias = "str | int | bool | bytes | list[AuditValue] | dict[str, AuditValue] | None"

AuditEvent: TypeAlias = dict[str, AuditValue]
"""What an event says, by name: `kind`, `who`, `at`, `why`, and what else belongs to a change of that kind."""


class ChangeAudit(TypedDict, total=False):
    """The keyword arguments that every change of where a job stands takes.

    Args:
        reason: why, for the audit event; required, and not empty.
        who: who asks for it; required.
        force: also under a lease: the run that holds it is fenced. Default: refused.
        expected_version: refuse if the head has another version by now. Default None: any.
        request_id: of the approved request that it carries out (see `lifecycle.changes.approval`), which counts as done
            with it; a protected job needs one.
    """

    reason: Required[str]
    who: Required[str]
    force: bool
    expected_version: int | None
    request_id: str | None


def check_reason(what: str, reason: str) -> None:
    """Make sure that a reason is given; `what` names the request.

    Raises:
        OptionError: the reason is no text, empty or blank, longer than 2,000 characters, or has characters that are
            not shown.
    """
    if not isinstance(reason, str):
        raise OptionError(f"the reason for {what} must be text, and is {reason!r}. Nothing was changed.")
    if len(reason) > MAX_REASON:
        raise OptionError(
            f"the reason for {what} has {len(reason):,} characters; {MAX_REASON:,} is the most. Nothing was changed."
        )
    # Blanks of any script, and invisible characters, are no reason.
    if all(unicodedata.category(letter)[0] in "ZC" for letter in reason):
        raise OptionError(f"{what} needs a reason; it is kept with who and when. Nothing was changed.")
    check_typed_text(f"the reason for {what}", reason)


def check_who(who: str) -> None:
    """Make sure that the name of the person who asks for a change contains nothing hidden.

    Raises:
        OptionError: it is no text, or has a new line, another control or a format character.
    """
    if not isinstance(who, str):
        raise OptionError(f"the name of who asks for a change must be text, and is {who!r}. Nothing was changed.")
    check_typed_text("the name of who asks for it", who)
