"""`getResolvedOptions`: the arguments of a script, by the rules of AWS Glue's documentation.

Two leniencies: without a list of options, every `--name value` is returned; and `JOB_RUN_ID` may be listed. Glue
ignores a misspelt `--job_bookmark_option`, and then reads everything; here it is an error.
"""

from __future__ import annotations

import argparse
import re
import secrets
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.glue.errors import GlueArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OPTION, _FROM, _TO, _LEGACY = "job-bookmark-option", "job-bookmark-from", "job-bookmark-to", "continuation-option"
_BOOKMARK = (_OPTION, _FROM, _TO)
_RESERVED = (*_BOOKMARK, _LEGACY, "encryption-type", "enable-data-lineage")
_IDS = ("JOB_NAME", "JOB_ID", "JOB_RUN_ID", "SECURITY_CONFIGURATION")
_FOLDERS = ("TempDir", "RedshiftTempDir")
_CONTINUATIONS = {
    "continuation-enabled": Option.ENABLE,
    "continuation-readonly": Option.PAUSE,
    "continuation-ignore": Option.DISABLE,
}
_LOOKS_LIKE_BOOKMARK = re.compile(r"job[-_]?bookmark", re.IGNORECASE)


class AssumedText(str):
    """A value of the result that nobody has given: the operator's takes its place."""

    __slots__ = ()


def getResolvedOptions(  # by Glue's name
    args: Sequence[str], options: Sequence[str] | None = None, allow_abbrev: bool = False
) -> dict[str, Any]:
    """Return the arguments of a script by name, with underscores for dashes.

    Args:
        args: the command line with the script in front: `sys.argv`.
        options: the names that have to be there, without dashes in front; None: all that are there.
        allow_abbrev: whether the beginning of a name may stand for it.

    Returns:
        The values as text. Beside what is listed: `JOB_RUN_ID` (made up if not given), `JOB_ID` and
        `SECURITY_CONFIGURATION` (None if not given), `job_bookmark_option` (`job-bookmark-disable` if not given),
        `job_bookmark_from` and `job_bookmark_to` (None if not given), for `Job.init`. `TempDir` and `RedshiftTempDir`
        are empty where they are listed and not given.

    Raises:
        GlueArgumentError: a listed name is missing, or an argument has no value or an unknown one.
        RuntimeError: a reserved name is listed; or one of from and to is given without the other, or without pause.
        OptionError: an argument looks like one for bookmarks, and is none.

    Example:
        >>> getResolvedOptions(["script.py", "--day-key", "d1"], ["day-key"])["day_key"]
        'd1'
    """
    given = list(args[1:])
    check_spelling(given)
    listed = _listed(given) if options is None else _checked(options)
    parser = _ScriptArguments(allow_abbrev=allow_abbrev, add_help=False, prog="getResolvedOptions")
    for name in dict.fromkeys([*_RESERVED, *_IDS, *_FOLDERS, *listed]):
        is_required = options is not None and name in listed and name not in (*_FOLDERS, "JOB_RUN_ID")
        parser.add_argument(f"--{name}", dest=name, required=is_required, nargs="?" if options is None else None)
    found = vars(parser.parse_known_args(given)[0])
    result = {_key(name): "" if found[name] is None else found[name] for name in listed if name not in _RESERVED}
    return {**result, **_ids(found), **_folders(found, listed), **_bookmark(found)}


def check_spelling(args: Iterable[str]) -> None:
    """Make sure that no argument of a script is a misspelt one for bookmarks.

    Raises:
        OptionError: one is; Glue ignores it, and reads everything.
    """
    for arg in args:
        name = arg.removeprefix("--").partition("=")[0]
        if arg.startswith("--") and _LOOKS_LIKE_BOOKMARK.match(name) and name not in _BOOKMARK:
            known = ", ".join(f"--{each}" for each in _BOOKMARK)
            raise OptionError(
                f"unknown argument --{name}: known are {known}. Nothing was read or changed. Glue ignores such an "
                "argument, and reads everything."
            )


class _ScriptArguments(argparse.ArgumentParser):
    """A parser that raises where argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        raise GlueArgumentError(f"arguments of the script: {message}. Nothing was read or changed.")


def _key(name: str) -> str:
    return name.replace("-", "_")


def _checked(options: Sequence[str]) -> list[str]:
    if isinstance(options, str):
        raise GlueArgumentError(
            f"options={options!r}: expected a list of names, as in getResolvedOptions(sys.argv, [{options!r}]). "
            "Nothing was read or changed."
        )
    reserved = [name for name in options if name.replace("_", "-") in _RESERVED]
    if reserved:
        raise RuntimeError(
            f"Using reserved arguments {', '.join(reserved)}: they are in the result without being listed. Nothing was "
            "read or changed."
        )
    return list(dict.fromkeys(options))


def _listed(args: Sequence[str]) -> list[str]:
    """Return the names that a command line gives."""
    names = [arg.removeprefix("--").partition("=")[0] for arg in args if arg.startswith("--")]
    return list(dict.fromkeys([*filter(None, names), "JOB_NAME"]))


def _ids(found: dict[str, Any]) -> dict[str, Any]:
    run_id = found["JOB_RUN_ID"] or AssumedText(f"jr_{secrets.token_hex(32)}")
    return {**{name: found[name] for name in ("JOB_ID", "SECURITY_CONFIGURATION")}, "JOB_RUN_ID": run_id}


def _folders(found: dict[str, Any], listed: Sequence[str]) -> dict[str, str]:
    """Return both names of the temporary folder: either sets both."""
    folder = found["TempDir"] or found["RedshiftTempDir"] or ""
    return dict.fromkeys(_FOLDERS, folder) if folder else {name: "" for name in _FOLDERS if name in listed}


def _bookmark(found: dict[str, Any]) -> dict[str, Any]:
    option, since, until = _option(found), found[_FROM], found[_TO]
    if (since is None) != (until is None):
        raise RuntimeError(
            f"Missing option or value for --{_TO if until is None else _FROM}. Nothing was read or changed."
        )
    if since is not None and Option.parse(option) is not Option.PAUSE:
        raise RuntimeError(
            f"Invalid option(s)--{_FROM} --{_TO}: they go with job-bookmark-pause, and the option is {option}. Nothing "
            "was read or changed."
        )
    return {_key(_OPTION): option, _key(_FROM): since, _key(_TO): until}


def _option(found: dict[str, Any]) -> str:
    legacy = found[_LEGACY]
    if legacy is not None and legacy not in _CONTINUATIONS:
        raise GlueArgumentError(
            f"argument --{_LEGACY}: invalid choice: {legacy!r} (choose from {', '.join(_CONTINUATIONS)}). Nothing was "
            "read or changed."
        )
    if found[_OPTION] is not None:
        return f"job-bookmark-{_parsed(found[_OPTION]).value}"
    if legacy is not None:
        return f"job-bookmark-{_CONTINUATIONS[legacy].value}"
    return AssumedText(f"job-bookmark-{Option.DISABLE.value}")


def _parsed(text: str) -> Option:
    try:
        return Option.parse(text)
    except OptionError as error:
        raise GlueArgumentError(f"argument --{_OPTION}: invalid choice: {text!r}: {error}") from error
