r"""Patterns of paths: those of Hadoop, which `spark.read.load` takes, and those of Glue's `exclusions`.

*  ?  [abc]  [a-c]  [^a]  {a,b}  \*         within one name, in both
**                                        across folders, in exclusions only; in a path it is `*`, as in Hadoop
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.wildcard import (
    BAR,
    CLOSE,
    OPEN,
    Many,
    One,
    Token,
    Wildcards,
    WildcardsTooManyError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What makes a path a pattern. A backslash alone does not: it may be part of a name.
SIGNS = frozenset("*?[]{}")

LONGEST_PATTERN = 8192  # characters
MOST_PATTERNS = 1000  # that one stands for

_NOTHING = "Nothing was read or changed."


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern below a folder: `root` has no pattern in it, `parts` match the names below it, one for each level.

    Folders and files match. Names that begin with `_` or `.` are left out by listings before a pattern sees them.

    Example:
        >>> (glob,) = Glob.expand("/lake/raw/2013-*/*.csv")
        >>> glob.root, glob.depth
        ('/lake/raw', 2)
        >>> [glob.may_match(folder) for folder in ("2013-01", "2012-12")]
        [True, False]
        >>> [glob.matched(file) for file in ("2013-01/a.csv", "2013-01/x.csv/deeper/b", "2013-01/a.txt")]
        ['2013-01/a.csv', '2013-01/x.csv', None]
    """

    root: str
    parts: tuple[Wildcards, ...]

    @classmethod
    def expand(cls, pattern: str) -> list[Glob]:
        """Return what a canonical path with a pattern stands for: several where alternatives have slashes in them.

        Raises:
            OptionError: a bracket or brace is not closed, nothing follows a backslash, or it is too long or stands for
                too many.
        """
        _check_length(pattern)
        try:
            plain = list(dict.fromkeys(islice(_without_slashes_in_braces(pattern), MOST_PATTERNS + 1)))
        except RecursionError:
            plain = []
        if not 0 < len(plain) <= MOST_PATTERNS:
            raise OptionError(
                f"the pattern {_shown(pattern)} stands for more than {MOST_PATTERNS}, by the slashes in its braces. "
                f"{_NOTHING} Name fewer folders in braces, or load the folder above them with partition_filter or "
                "exclusions."
            )
        return [cls._of(each) for each in plain]

    @classmethod
    def _of(cls, pattern: str) -> Glob:
        # What comes before the first name is the file system's: "" or "s3a://bucket".
        head, slash, rest = pattern.partition("://")
        start, names = (f"{head}{slash}", rest) if slash else ("", pattern)
        fixed, *levels = names.split("/")
        levels = [level for level in levels if level]
        literal = 0
        while literal < len(levels) and not SIGNS & set(_without_escaped(levels[literal])):
            literal += 1
        folders = [fixed, *map(_unescaped, levels[:literal])]
        root = f"{start}{'/'.join(folders)}"
        return cls(root or "/", tuple(_compiled(level, pattern) for level in levels[literal:]))

    @property
    def depth(self) -> int:
        """How many levels below the root a match lies."""
        return len(self.parts)

    def may_match(self, folder: str) -> bool:
        """Whether a folder below the root matches, lies below one that does, or may hold one that does."""
        return all(part.matches(name) for part, name in zip(self.parts, folder.split("/"), strict=False))

    def matched(self, path: str) -> str | None:
        """Return the part of a path below the root that matches, None where none does."""
        names = path.split("/")
        if len(names) < self.depth or not self.may_match(path):
            return None
        return "/".join(names[: self.depth])


@dataclass(frozen=True, slots=True)
class NamePattern:
    """Spark's `pathGlobFilter`: which names of files are read.

    Example:
        >>> [NamePattern.of("*.{csv,tsv}").matches(name) for name in ("a.csv", "b.tsv", "c.txt")]
        [True, True, False]
    """

    _wildcards: Wildcards

    @classmethod
    def of(cls, pattern: str) -> NamePattern:
        """Read a pattern of names.

        Raises:
            OptionError: it is none, or has a slash in it.
        """
        if not pattern or "/" in pattern:
            raise OptionError(
                f"pathGlobFilter={pattern!r}: expected a pattern of file names, such as '*.csv'. {_NOTHING} Patterns "
                "of folders go into the path: .load('/lake/raw/2013-*')."
            )
        return cls(_compiled(pattern, pattern))

    def matches(self, name: str) -> bool:
        """Whether a file of this name is read."""
        return self._wildcards.matches(name)


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Glue's `exclusions`: patterns of what is not read, each of a whole path below the root.

    `**` stands for any text, slashes too, and `**/` for any number of folders, none as well; a pattern that ends in a
    slash excludes all in that folder.

    Example:
        >>> tmp = Exclusions.of(["**/tmp/**", "*.bak"])
        >>> [tmp.matches(path) for path in ("tmp/a.csv", "x/tmp/y/a.csv", "a.bak", "x/a.bak", "x/tmp.csv")]
        [True, True, True, False, False]
    """

    _wildcards: Wildcards

    @classmethod
    def of(cls, patterns: Sequence[str]) -> Exclusions:
        """Read patterns, at least one.

        Raises:
            OptionError: one is empty, no text, not closed, has a range that runs backwards, or is no path below the
                root.
        """
        try:
            return cls(Wildcards.any_of([_excluding(pattern) for pattern in patterns]))
        except (WildcardsTooManyError, RecursionError) as error:
            raise OptionError(f"the exclusions have too many alternatives. {_NOTHING} Join some of them.") from error

    def matches(self, path: str) -> bool:
        """Whether a file is excluded, by its path below the root."""
        return self._wildcards.matches(path)


def _excluding(pattern: object) -> Wildcards:
    if not isinstance(pattern, str) or not pattern:
        raise OptionError(
            f"exclusions: {pattern!r} is no pattern. {_NOTHING} Give texts such as '**/tmp/**' or '*.bak'."
        )
    if pattern.startswith("/") or "://" in pattern:
        raise OptionError(
            f"exclusions: {pattern!r} is no path below the folder that is loaded. {_NOTHING} Patterns are relative to "
            "that folder: '2013/tmp/**', or '**/tmp/**' at any depth."
        )
    return _compiled(f"{pattern}**" if pattern.endswith("/") else pattern, pattern, crosses=True)


# ---- from a pattern to a regular expression


@lru_cache(maxsize=1024)
def _compiled(pattern: str, whole: str, *, crosses: bool = False) -> Wildcards:
    _check_length(whole)
    try:
        return Wildcards.of(_tokens(pattern, whole, crosses=crosses))
    except re.error as error:  # a range that runs backwards
        raise _broken(whole, str(error)) from error
    except (WildcardsTooManyError, RecursionError) as error:
        raise OptionError(
            f"the pattern {_shown(whole)} has too many alternatives in braces, one behind or within the other. "
            f"{_NOTHING} Write '*' for some of them."
        ) from error


def _check_length(pattern: str) -> None:
    if len(pattern) > LONGEST_PATTERN:
        raise OptionError(
            f"the pattern {_shown(pattern)} has {len(pattern)} characters, and {LONGEST_PATTERN} are the most. "
            f"{_NOTHING} Load the folder above, and tell what is meant by partition_filter or exclusions."
        )


def _shown(pattern: str) -> str:
    return repr(pattern) if len(pattern) <= 200 else f"{pattern[:200]!r}..."


def _tokens(pattern: str, whole: str, *, crosses: bool) -> list[Token]:
    """Translate sign by sign, as Hadoop's GlobPattern does; `crosses`: the pattern is of several levels."""
    any_sign = "[^/]" if crosses else "."
    tokens: list[Token] = []
    at, open_braces = 0, 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
            if at == len(pattern):
                raise _broken(whole, "nothing follows its last backslash")
            tokens.append(One(re.escape(pattern[at])))
        elif crosses and pattern.startswith("**", at):
            is_folders = pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] in "/{,")
            tokens += [OPEN, Many("."), One("/"), BAR, CLOSE] if is_folders else [Many(".")]
            at += 2 if is_folders else 1
        elif sign == "*":
            tokens.append(Many(any_sign))
        elif sign == "?":
            tokens.append(One(any_sign))
        elif sign == "[":
            text, at = _set_at(pattern, at, whole)
            tokens.append(One(f"(?!/){text}" if crosses else text))
        elif sign == "{":
            open_braces += 1
            tokens.append(OPEN)
        elif sign == "}" and open_braces:
            open_braces -= 1
            tokens.append(CLOSE)
        else:
            tokens.append(BAR if sign == "," and open_braces else One(re.escape(sign)))
        at += 1
    if open_braces:
        raise _broken(whole, "a '{' is not closed")
    return tokens


def _set_at(pattern: str, start: int, whole: str) -> tuple[str, int]:
    """Return the regular expression of a set that begins at `start`, and where it ends."""
    at = start + 1
    is_negated = at < len(pattern) and pattern[at] in "!^"
    at += is_negated
    signs: list[str] = []
    while at < len(pattern) and (pattern[at] != "]" or not signs):
        if pattern[at] == "\\":
            at += 1
        signs.append(
            "-" if pattern[at : at + 1] == "-" and pattern[at - 1] != "\\" else re.escape(pattern[at : at + 1])
        )
        at += 1
    if at >= len(pattern):
        raise _broken(whole, "a '[' is not closed")
    return f"[{'^' * is_negated}{''.join(signs)}]", at


def _without_escaped(text: str) -> str:
    return re.sub(r"\\.", "", text, flags=re.DOTALL)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _without_slashes_in_braces(pattern: str) -> Iterator[str]:
    """Yield the patterns that a pattern with slashes within braces stands for; braces without slashes stay."""
    for start, end in _braces(pattern):
        if "/" in pattern[start:end]:
            for choice in _choices(pattern[start + 1 : end]):
                yield from _without_slashes_in_braces(f"{pattern[:start]}{choice}{pattern[end + 1 :]}")
            return
    yield pattern


def _braces(pattern: str) -> Iterator[tuple[int, int]]:
    """Yield where the outermost braces begin and end."""
    depth, start, at = 0, 0, 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "{":
            start = at if depth == 0 else start
            depth += 1
        elif pattern[at] == "}" and depth:
            depth -= 1
            if depth == 0:
                yield start, at
        at += 1


def _choices(inside: str) -> Iterator[str]:
    depth, start, at = 0, 0, 0
    while at < len(inside):
        if inside[at] == "\\":
            at += 1
        elif inside[at] in "{}":
            depth += 1 if inside[at] == "{" else -1
        elif inside[at] == "," and depth == 0:
            yield inside[start:at]
            start = at + 1
        at += 1
    yield inside[start:]


def _broken(pattern: str, why: str) -> OptionError:
    return OptionError(
        f"the pattern {_shown(pattern)} can't be read: {why}. {_NOTHING} Close it, or put a backslash before it."
    )
