"""Redaction: what is taken out of the text of an error before it is stored or shown to others.

    jdbc:postgresql://etl:hunter2@db/lake?ssl=true   ->   jdbc:postgresql://***@db/lake?ssl=true
    fs.s3a.secret.key=wJalrXUtn                      ->   fs.s3a.secret.key=***
    {"user": "etl", "password": "hunter2"}           ->   {"user": "etl", "password": "***"}

Known are the keys of Spark's own `spark.redaction.regex` (secret, password, token, access key) and their like, user
info in URLs, the parameters of presigned URLs, headers that authorise, access keys of AWS with the secret beside them,
and private keys. In doubt it takes out too much: the whole text is in the log of the task.

Each expression is linear in the text: what repeats without a bound either gives nothing back (`*+`) or can't begin
again inside of what it has looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "***"
MAX_ERROR = 2000  # characters of an error that state keeps
CUT = "\n... cut, the whole text is in the task's log"

_LONGEST_LOOK = 64 * 1024  # characters; the error of a broken record may hold all of its data

# Inside of a key, wherever in it: `fs.s3a.secret.key`, `AWS_SESSION_TOKEN`, `ConnectionPassword`.
_WORD = (
    r"(?:secret|passw(?:or)?d|passphrase|passcode|token|pwd"
    r"|(?:access|api|account|private|shared|encryption|subscription|functions|signing)[._-]?key|shared[._-]?access[._-]?signature)"
)
# Only as a whole word of a key: `sig=` of a SAS, `X-Amz-Signature=`, `X-Amz-Credential=`, and not `design=`.
_WHOLE_WORD = r"(?<![a-z0-9])(?:sig|signature|credentials?|pass|pw|sas(?:[._-][\w.-]{0,80}+)?)"
_REST = r"[\w.-]{0,80}+"  # of a key
_MARKUP = r"&(?:quot|\#3[49]);"  # a quote in HTML
_CLOSED = rf"""(?:["'\\\]]|{_MARKUP}){{0,4}}+[ \t]{{0,8}}+"""  # the quotes around a key
_EQUALS = r"(?:[!:]?={1,3}+>?|->|%3d)[ \t]{0,8}+"
_COLON = r""":(?![:/])(?:\s{0,64}+(?=["'])|[ \t]{0,8}+)"""
_DOUBLE, _SINGLE = r'"(?:[^"\\\n]|\\[^\n])*+"?', r"'(?:[^'\\\n]|\\[^\n])*+'?"
# In a field of CSV quotes are doubled; bytes of Python have a letter before them.
_DOUBLED = r""""{2,3}(?=[^\s"',;:}\])])[^"\n]*+"{0,3}"""
_QUOTED = rf'{_DOUBLED}|{_DOUBLE}|{_SINGLE}|\\++"[^"\n]*+"?|[bBuUrR]{{1,2}}+(?:{_DOUBLE}|{_SINGLE})'
_QUOTED += rf"|{_MARKUP}[^&\n]*+(?:{_MARKUP})?"
# A password may have `&`, `;` and `,` in it; before another key, or a blank, they end it.
_BARE = r"""(?:[^\s"'&;,]|[&;,](?![\w.-]{1,64}+=|\s|\Z))++"""
_VALUE = rf"(?P<value>{_QUOTED}|\[[^\]\n]*+\]?|\{{[^}}\n]*+\}}?|{_BARE})"
# `TokenExpiredException: the session ended`, `TokenStore.java:12`: no keys.
_NO_CODE = r"(?![\w.$]{0,80}(?:error|exception|fault|failure|warning|manager|provider|java|scala|py)\b)"

# Where user info begins: `user:`, where the user may be a mail address, and not the port of a host.
_USER = re.compile(r"[^/:?#]*+:(?!\d{1,5}[/?#;,])")
_ORACLE = re.compile(r"jdbc:oracle:\w{1,16}+:(?=[^/@]++/)", re.IGNORECASE)
_TOKEN = re.compile(r"""[^\s"'<>`]++""")


def redacted(text: str) -> str:
    """Return `text` with `***` in the place of each secret; text without one is returned as it is.

    Example:
        >>> redacted("redis://:hunter2@cache:6379/0 refused; --token abc")
        'redis://***@cache:6379/0 refused; --token ***'
    """
    for _ in range(3):  # what one rule leaves, another one may know
        before, text = text, _once(text)
        if text == before:
            break
    return text


def stored_error(text: str, limit: int = MAX_ERROR) -> str:
    """Return the text of an error as state keeps it: redacted, and cut after `limit` characters, which it says.

    Example:
        >>> stored_error("x" * 3000).endswith("... cut, the whole text is in the task's log")
        True
    """
    kept = redacted(text[:_LONGEST_LOOK])
    if len(text) <= _LONGEST_LOOK and len(kept) <= limit:
        return kept
    if len(kept) <= limit:
        # Nearly all of the look was secret, and its end may be the first half of another one.
        kept = kept[: kept.rfind(MARK) + len(MARK)]
    return kept[: limit - len(CUT)] + CUT


def has_user_info(uri: str) -> bool:
    """Whether a URI says a user and a password before its host.

    Example:
        >>> has_user_info("s3a://key:secret@lake/raw"), has_user_info("abfss://raw@lake.dfs.core.windows.net/")
        (True, False)
    """
    return _user_info(uri) is not None


def _once(text: str) -> str:
    lower = text.lower()
    for rule in _RULES:
        if any(hint in lower for hint in rule.hints):
            text = rule.pattern.sub(rule.put, text)
    return text


# ---- URLs


def _user_info(token: str) -> tuple[int, int] | None:
    """Return where user info begins and ends in a text without blanks: a password may have `/`, `:` and `@` in it."""
    end = token.rfind("@")
    oracle = _ORACLE.search(token, 0, end + 1)
    if oracle is not None:
        return oracle.end(), end
    start = token.find("://")
    while 0 <= start < end:
        if _USER.match(token, start + 3, end + 1):
            return start + 3, end
        start = token.find("://", start + 3)
    return None


def _without_user_info(match: re.Match[str]) -> str:
    token = match[0]
    found = _user_info(token)
    return token if found is None else token[: found[0]] + MARK + token[found[1] :]


# ---- keys and values


def _put_mark(match: re.Match[str]) -> str:
    """Replace the group `value`; a quoted one stays quoted, so that JSON stays JSON."""
    value = match["value"]
    kept = match[0].removesuffix(value)
    opening = value[: len(value) - len(value.lstrip("\\"))]
    sign = value[len(opening) : len(opening) + 1]
    quote = opening + sign if sign in ("'", '"') else ""
    return f"{kept}{quote}{MARK}{quote}"


@dataclass(frozen=True, slots=True)
class _Rule:
    """What is replaced by what; asked only of a text that has one of the `hints` in it, in small letters."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    put: str | Callable[[re.Match[str]], str]


def _keyed(*hints: str, before: str) -> _Rule:
    return _Rule(hints, re.compile(before + _VALUE, re.IGNORECASE), _put_mark)


_WORDS = ("secret", "passw", "passphrase", "passcode", "token", "pwd", "key", "signature")
_LINE = rf"(?P<value>{_QUOTED}|[^\n]++)"

_RULES = (
    _Rule(
        ("private key",),
        re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}KEY[A-Z ]{0,8}-----|\Z)", re.S),
        MARK,
    ),
    _Rule(("@",), _TOKEN, _without_user_info),
    # A token alone: `https://ghp_...@github.com`. Of other schemes a name before the host is a user, or a container.
    _Rule(("http",), re.compile(r"""(https?://)[^\s/@:?#"'<>]++@""", re.IGNORECASE), rf"\g<1>{MARK}@"),
    _Rule(
        ("authorization", "cookie"),
        re.compile(rf"(?:authorization{_CLOSED}(?::|=)|cookie{_CLOSED}:)[ \t]{{0,8}}+{_LINE}", re.IGNORECASE),
        _put_mark,
    ),
    _Rule(("bearer",), re.compile(r"(\bbearer[ \t]++)[\w.~+/=-]{20,}+", re.IGNORECASE), rf"\g<1>{MARK}"),
    _keyed(*_WORDS, before=rf"{_WORD}{_REST}{_CLOSED}{_EQUALS}"),
    _keyed(*_WORDS, before=rf"(?<![:/]){_WORD}{_NO_CODE}{_REST}{_CLOSED}{_COLON}"),
    _keyed("sig", "credential", "pass", "pw", "sas", before=rf"{_WHOLE_WORD}{_CLOSED}{_EQUALS}"),
    _keyed(*_WORDS, before=rf"(?<![\w-])--(?=[\w.-]{{0,40}}{_WORD}){_REST}[ \t]++(?!-)"),
    _Rule(
        ("identified", "password", "secret"),
        re.compile(
            rf"\b(?:identified(?: with \w{{1,40}}+)? by|password|secret(?:_access)?_key)[ \t]++(?P<value>{_QUOTED})",
            re.IGNORECASE,
        ),
        _put_mark,
    ),
    # Pairs of Scala and Python: `(spark.x.secret.key,...)`, `('password', '...')`.
    _Rule(
        _WORDS,
        re.compile(
            rf"""\((?=[^,()\n]{{0,120}}{_WORD})(?:[\w.-]{{1,120}}+,(?P<value>[^()\s]++)"""
            rf"""|["'][\w.-]{{1,120}}+["'],[ ]?(?P<quoted>{_DOUBLE}|{_SINGLE}))(?=\))""",
            re.IGNORECASE,
        ),
        lambda match: match[0].removesuffix(match["value"] or match["quoted"]) + MARK,
    ),
    # A name beside its value: variables of Kubernetes, attributes of XML.
    _keyed(
        *_WORDS,
        before=rf"""\b(?:name|key)["']?\s{{0,4}}+[:=]\s{{0,4}}+["']?(?=[\w.-]{{0,80}}{_WORD})[\w.-]{{1,120}}+["']?,?"""
        r"""\s{0,32}+["']?value["']?\s{0,4}+[:=]\s{0,4}+""",
    ),
    _Rule(
        ("%3a%2f%2f",),
        re.compile(r"""(%3a%2f%2f)[^\s&"'<>/@%]{0,64}+%3a[^\s&"'<>/@]{0,256}%40""", re.IGNORECASE),
        rf"\g<1>{MARK}%40",
    ),
    _Rule(("hooks.slack",), re.compile(r"(hooks\.slack\.com/services/)[\w/]++", re.IGNORECASE), rf"\g<1>{MARK}"),
    _Rule(
        ("</",),
        re.compile(rf"({_WORD}[\w.:-]{{0,80}}+(?:</name>\s{{0,16}}+<value>|>))[^<>\n]++(?=</)", re.IGNORECASE),
        rf"\g<1>{MARK}",
    ),
    # An access key, and what may be its secret: 40 characters a few words behind it.
    _Rule(
        ("akia", "asia", "abia", "acca"),
        re.compile(
            r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}+"
            r"(?:([^A-Za-z0-9/+]{1,16}(?:\w{1,32}+[^\w/+]{1,8}+){0,3}?)[A-Za-z0-9/+]{40}+(?![A-Za-z0-9/+]))?"
        ),
        lambda match: MARK if match[1] is None else f"{MARK}{match[1]}{MARK}",
    ),
    _Rule(
        ("eyj", "gh", "github_pat_", "xox", "dapi", "glpat-", "aiza", "ya29.", "hvs.", "npm_", "sk-"),
        re.compile(
            r"(?<![\w.-])(?:eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?|gh[pousr]_\w{20,}+|github_pat_\w{20,}+"
            r"|xox[abeprs]-[\w-]{10,}+|dapi[0-9a-f]{32}(?:-\d)?"
            r"|glpat-[\w-]{20,}+|AIza[\w-]{35}|ya29\.[\w-]{20,}+|hvs\.[\w-]{20,}+|npm_\w{36}|sk-[\w-]{32,}+)"
        ),
        MARK,
    ),
)
