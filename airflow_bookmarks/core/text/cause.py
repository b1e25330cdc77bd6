"""Extract what an error says, without the stack that Spark puts into its text."""

from __future__ import annotations

import re

# Matched at the beginning of a line, without backtracking: linear in a text that may quote a file.
_STACK = re.compile(r"\s++at \S+\(|\s++\.\.\. \d++ more|(JVM|Driver) stacktrace:")
_TRACE = "Traceback (most recent call last):"
_JVM = "JVM stacktrace:"
_CAUSED = "Caused by: "
_MOST_LINES = 8


def cause_of(error: BaseException) -> str:
    """Return class and text of an error in a few lines: what happened, its last cause, and the notes it was given.

    Example:
        >>> cause_of(ValueError("no such folder"))
        'ValueError: no such folder'
    """
    return "\n".join([_text_of(error), *getattr(error, "__notes__", ())])


def exit_code_of(error: BaseException) -> int | None:
    """Return the exit code that an error gives its process, from 0 to 255; None for an error that names none.

    Example:
        >>> exit_code_of(SystemExit(3)), exit_code_of(SystemExit("no input")), exit_code_of(ValueError())
        (3, 1, None)
    """
    if not isinstance(error, SystemExit):
        return None
    code = 0 if error.code is None else error.code
    return code & 0xFF if isinstance(code, int) else 1  # as Python and the operating system have it


def _text_of(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}".rstrip()
    lines = text.splitlines()
    if _TRACE not in text and not any(map(_STACK.match, lines)):
        return text
    told = [line for line in _without_repeated(_without_traces(lines)) if not _STACK.match(line)]
    causes = [line for line in told if line.startswith(_CAUSED)]
    first = [line for line in told if not line.startswith(_CAUSED)][:_MOST_LINES]
    return "\n".join([*first, *causes[-1:]]).removesuffix(".")


def _without_repeated(lines: list[str]) -> list[str]:
    """Leave out the error where its stack begins: Spark Connect has said it before."""
    told: list[str] = []
    is_repeated = False
    for line in lines:
        is_repeated = line == _JVM or (is_repeated and not _STACK.match(line))
        if not is_repeated:
            told.append(line)
    return told


def _without_traces(lines: list[str]) -> list[str]:
    """Leave out of Python's traces all but their last line, which is the error."""
    told: list[str] = []
    is_in_trace = False
    for line in lines:
        if _TRACE in line:
            is_in_trace = True
            told.append(line.partition(_TRACE)[0].rstrip())
        elif not is_in_trace or not line.startswith((" ", "\t")):
            is_in_trace = False
            told.append(line)
    return [line for line in told if line.strip()]
