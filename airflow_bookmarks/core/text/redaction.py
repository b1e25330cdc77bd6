"""Redact secrets from the text of an error before it is stored or shown to others.

    jdbc:postgresql://etl:hunter2@db/lake?ssl=true   ->   jdbc:postgresql://***@db/lake?ssl=true
    fs.s3a.secret.key=wJalrXUtn                      ->   fs.s3a.secret.key=***
    {"user": "etl", "password": "hunter2"}           ->   {"user": "etl", "password": "***"}

Known are the keys of Spark's own `spark.redaction.regex` (secret, password, token, access key) and their like, also as
lines of YAML and of properties, user info in URLs, the parameters of presigned URLs, headers that authorise, options of
programs that take a password (`curl -u`, `mysql -p`), access keys of AWS with the secret beside them, and private keys.
In doubt it takes out too much: the whole text is in the log of the task. What is no secret by its form stays: a count
of tokens, the type of a column, a partition of a path (`/token=abc/`).

Each expression is linear in the text: an unbounded repetition either does not backtrack (`*+`) or can't begin again
inside of what it has matched.
"""

from __future__ import annotations

import base64
import binascii
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
# Not inside of another word (`secretary`, `tokenizer`, `private_keyspace`), and not in a count (`max_tokens=4096`).
_COUNT = (
    r"(?:s|s?[._-]?(?:count|limit|budget|usage|size|length|index|number))"
    r"""["'\\]{0,4}[ \t]{0,8}[:=][ \t]{0,8}\d{1,15}+(?=[.,;]?(?:[\s)\]}"'>&]|\Z)|[,;&][\w.-]{1,64}[=:])"""
)
_WORD = (
    rf"(?:secret(?!ar[iy])|passw(?:or)?d|passphrase|passcode|(?<!unexpected )token(?!i[sz]|{_COUNT})|pwd"
    r"|(?:access|api|account|private|shared|encryption|subscription|functions|signing)[._-]?key(?!space|word|board)"
    r"|shared[._-]?access[._-]?signature)"
)
# Only as a whole word of a key: `sig=` of a SAS, `X-Amz-Signature=`, `X-Amz-Credential=`, and not `design=`.
_WHOLE_WORD = r"(?<![a-z0-9])(?:sig|signature|credentials?|pass|pw|sas(?:[._-][\w.-]{0,80}+)?)"
_REST = r"[\w.-]{0,80}+"  # of a key
_MARKUP = r"&(?:quot|\#3[49]);"  # a quote in HTML
_CLOSED = rf"""(?:["'\\\]]|{_MARKUP}){{0,4}}+[ \t]{{0,8}}+"""  # the quotes around a key
_EQUALS = r"(?:[!:]?={1,3}+>?|->|%3d)[ \t]{0,8}+"
_COLON = r""":(?![:/])(?:\s{0,64}+(?=["'])|[ \t]{0,8}+)"""
_DOUBLE, _SINGLE = r'"(?:[^"\\\n]|\\[^\n])*+"?', r"'(?:[^'\\\n]|\\[^\n]|'')*+'?"
# In a field of CSV quotes are doubled; bytes of Python have a letter before them.
_DOUBLED = r""""{2,3}(?=[^\s"',;:}\])])[^"\n]*+"{0,3}"""
_QUOTED = rf'{_DOUBLED}|{_DOUBLE}|{_SINGLE}|\\++"[^"\n]*+"?|[bBuUrR]{{1,2}}+(?:{_DOUBLE}|{_SINGLE})'
_QUOTED += rf"|{_MARKUP}[^&\n]*+(?:{_MARKUP})?"
# A password may have `&`, `;` and `,` in it; before another key, or a blank, they end it.
_BARE = r"""(?:[^\s"'&;,]|[&;,](?![\w.-]{1,64}+=|\s|\Z))++"""
# Values that are no secrets: of a switch, of an unset option, of a column in a schema.
_NO_VALUE = (
    r"(?!(?:true|false|null|none|string|text|(?:var)?char|(?:big|small|tiny)?int|integer|long|double|float|decimal|boolean"
    r"|binary|date|timestamp|array|map|struct)(?:[\s,;)\]}<>(&]|\Z))"
)
_VALUE = rf"{_NO_VALUE}(?P<value>{_QUOTED}|\[[^\]\n]*+\]?|\{{[^}}\n]*+\}}?|{_BARE})"
# `TokenExpiredException: the session ended`, `TokenStore.java:12`: no keys.
_NO_CODE = r"(?![\w.$]{0,80}(?:error|exception|fault|failure|warning|manager|provider|java|scala|py)\b)"

# ---- options of programs, and keys with a blank before their value

# Between an option and its value: in a shell, and in a list as Python and Scala print it.
_BESIDE = r"""(?:[ \t]{1,64}+|=|["']?,[ \t]{0,8}+)"""
_ARGUMENT = rf"""(?!["']?(?:-|\Z))(?P<value>{_QUOTED}|[^\s"']++)"""
# `the option --token is missing`: a word of a sentence is no value.
_NO_WORD = (
    r"(?!(?:is|are|was|were|has|had|have|be|must|may|can|cannot|could|should|will|would|does|did|do|not|no|and|or|but|for"
    r"|from|in|on|of|to|at|by|as|with|without|given|missing|required|expected|invalid|unknown|expired|failed|failure|option"
    r"|property|setting|value|key|column|field|parameter|argument|file|where|when|if|asc|desc|like|limit|order|group|then)\b)"
)
_DASHED = r"(?<![\w-])-"
# Programs, and the option that takes a password. Of those that say `-p` for a port, a folder or a process none is here.
_PROGRAMS = (
    (
        r"sshpass|(?:mysql|mariadb|mongo)(?:sh|dump|admin|import|export|restore|check)?|mariadb-(?:dump|admin|import)"
        r"|beeline|cqlsh|snowsql|7za?|(?:(?:docker|podman|helm)(?:[ \t]registry)?|az|nerdctl|oras)[ \t]login",
        "p",
    ),
    (r"bcp|sqlcmd|isql|tsql|zip|unzip", "P"),
    (r"redis-cli", "a"),
    (r"ldap(?:search|add|modify|delete|passwd|whoami)|vsql", "w"),
)
_PROGRAM = rf"""(?<![\w:.-])(?:{"|".join(names for names, _ in _PROGRAMS)})(?=["',\s])"""
_COMMAND = rf"{_PROGRAM}(?:(?!{_PROGRAM})[^\n])*+"
_COMMANDS = tuple(
    (
        re.compile(rf"(?:{names})\b"),
        re.compile(rf"""{_DASHED}{option}(?:{_BESIDE}{_ARGUMENT}|(?P<attached>'[^'\n]*+'?|"[^"\n]*+"?|[^\s"',]++))"""),
    )
    for names, option in _PROGRAMS
)

# ---- blocks of YAML

_BREAK = r"(?:\r?\n|\\n)"  # also as Python and JSON write it
_CHAR = r"(?:(?!\\n)[^\n])"
_BLOCK_KEY = (
    r"""(?:^|(?<=\\n)|(?<=["']))(?P<indent>[ \t]{0,200}+)(?:-[ \t]{1,8}+){0,4}+"""
    rf"""["']?(?=[\w.-]{{0,80}}{_WORD}|pass["']?:)[\w.-]{{1,160}}+["']?:[ \t]*+"""
)
_BLOCK_SIGN = rf"(?:![\w!:/.-]{{1,80}}+[ \t]*+)?[|>][-+\d]{{0,2}}+[ \t]*+(?:\#{_CHAR}*+)?"
# No keys of their own (`secret:\n  name: x`), no lines of a stack, and no quotes, which another rule knows.
_NO_KEYS = r"""(?!["']|(?:-[ \t]{1,8}){0,4}["']?[\w.-]{1,80}["']?:(?:\s|\\n|\Z)|at\s)"""
_BLOCK = (
    rf"{_BREAK}(?:[ \t]*+{_BREAK})*+(?P<body>(?P=indent)[ \t]++){{}}{_CHAR}++"
    rf"(?:{_BREAK}(?:[ \t]*+(?={_BREAK})|(?P=body){_CHAR}*+))*+"
)
_INDENTED = r"(?:\n(?:[ \t]*+(?=\n)|(?P=indent)[ \t]++(?:[^{0}\\\n]|\\[^\n])*+))++"

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
    """Return the text of an error for storage: redacted, and cut after `limit` characters, with a note.

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
    """Whether a URI has a user and a password before its host.

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


# A value of a partition, and the folders and the name below it. With another `=` in it, it may be a secret of base64.
_PARTITION = re.compile(r"[^/=]++(?:/(?:[\w.-]++=)?[^/=]*+)*+")
_KEY_OF_FOLDER = re.compile(r"[\w.*=%-]/[\w.-]{0,80}\Z")
_ADDRESS = re.compile(r"https?:|jdbc:|\?", re.IGNORECASE)
_LONGEST_PATH = 1200


def _is_partition(match: re.Match[str]) -> bool:
    """Whether a key with its value is a folder of a path, as in `s3://lake/raw/token=abc/part-0.csv`."""
    if _PARTITION.fullmatch(match["value"]) is None:
        return False
    before = match.string[max(0, match.start() - _LONGEST_PATH) : match.start()]
    if _KEY_OF_FOLDER.search(before, max(0, len(before) - 83)) is None:
        return False
    return _ADDRESS.search(re.split(r"[\s\"'<>]", before)[-1]) is None


def _put_mark_but_in_a_path(match: re.Match[str]) -> str:
    return match[0] if _is_partition(match) else _put_mark(match)


def _put_mark(match: re.Match[str]) -> str:
    """Replace the group `value`; a quoted one stays quoted, so that JSON stays JSON."""
    value = match["value"]
    kept = match[0].removesuffix(value)
    opening = value[: len(value) - len(value.lstrip("\\"))]
    sign = value[len(opening) : len(opening) + 1]
    quote = opening + sign if sign in ("'", '"') else ""
    return f"{kept}{quote}{MARK}{quote}"


# ---- options and blocks


def _without_passwords(match: re.Match[str]) -> str:
    """Replace the passwords in the line of a program, up to the next program."""
    command = match[0]
    for names, option in _COMMANDS:
        if names.match(command):
            return option.sub(lambda found: _put_mark(found) if found["value"] else f"{found[0][:2]}{MARK}", command)
    return command


def _without_block(match: re.Match[str]) -> str:
    """Replace the lines of a block; what follows it begins on a line of its own as before."""
    return f"{match[0].removesuffix(match['value']).rstrip()} {MARK}"


def _without_basic(match: re.Match[str]) -> str:
    """Replace `user:password` in base64, and no other word behind `Basic`."""
    word = match[2]
    try:
        is_pair = b":" in base64.b64decode(word.rstrip("=") + "=" * (-len(word.rstrip("=")) % 4), validate=True)
    except binascii.Error:
        return match[0]
    return match[1] + MARK if is_pair else match[0]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What is replaced by what; asked only of a text that has one of the `hints` in it, in small letters."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    put: str | Callable[[re.Match[str]], str]


def _keyed(*hints: str, before: str, put: Callable[[re.Match[str]], str] = _put_mark) -> _Rule:
    return _Rule(hints, re.compile(before + _VALUE, re.IGNORECASE), put)


def _lines(value: str, put: Callable[[re.Match[str]], str]) -> _Rule:
    return _Rule(_WORDS, re.compile(rf"{_BLOCK_KEY}(?P<value>{value})", re.IGNORECASE | re.MULTILINE), put)


_WORDS = ("secret", "passw", "passphrase", "passcode", "token", "pwd", "key", "signature")
_PROGRAM_HINTS = (
    *(
        "sshpass",
        "mysql",
        "mariadb",
        "mongo",
        "beeline",
        "cqlsh",
        "snowsql",
        "7z",
        "login",
        "bcp",
        "sqlcmd",
        "isql",
        "tsql",
    ),
    *("zip", "redis-cli", "ldap", "vsql"),
)
_LINE = rf"(?P<value>{_QUOTED}|[^\n]++)"
# A key of more than one word, as in a file of properties: `spark.ssl.keyPassword`, `client_secret`, `AccountKey`.
_PROPERTY = (
    rf"(?<![\w./:-])(?=[\w.-]{{1,120}}{_WORD}|(?:access|api|account|private|shared)[._-]?key)"
    r"[\w.-]{1,160}+[ \t]{1,64}+"
)
_MARGIN = r"^[ \t]{0,200}+"
_NUMBERED = r"""(?=[^\s"']{0,200}[\d+/=!$%^*~])"""
_STORE = r"(?<![\w./:-])(?:[\w.-]{0,80}[._-])?(?:(?:key|trust)[._-]?store|store|key)[._-]?pass(?:w(?:or)?d)?"

_RULES = (
    _Rule(
        ("private key",),
        re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}KEY[A-Z ]{0,8}-----|\Z)", re.S),
        MARK,
    ),
    # Blocks first: the lines below a key have none of their own.
    _lines(_BLOCK_SIGN + _BLOCK.format(""), _without_block),
    _lines(_BLOCK.format(_NO_KEYS), _without_block),
    _lines(rf'"(?:[^"\\\n]|\\[^\n])*+{_INDENTED.format(chr(34))}"', _put_mark),
    _lines(rf"'[^'\n]*+{_INDENTED.format(chr(39))}'", _put_mark),
    _Rule(("@",), _TOKEN, _without_user_info),
    # Without a scheme: `etl:hunter2@db:5432/lake`, `etl:hunter2@tcp(db)/lake`.
    _Rule(
        ("@",),
        re.compile(
            r"""(?<![\w/:.@$-])([\w.-]{1,64}+:)[^\s:/@"'<>]{1,128}+(?=@(?:[\w.-]{1,128}+:\d{1,5}\b|(?:tcp|unix)\())"""
        ),
        rf"\g<1>{MARK}",
    ),
    # A token alone: `https://ghp_...@github.com`. Of other schemes a name before the host is a user, or a container.
    _Rule(("http",), re.compile(r"""(https?://)[^\s/@:?#"'<>]++@""", re.IGNORECASE), rf"\g<1>{MARK}@"),
    _Rule(
        ("authorization", "cookie"),
        re.compile(rf"(?:authorization{_CLOSED}(?::|=)|cookie{_CLOSED}:)[ \t]{{0,8}}+{_LINE}", re.IGNORECASE),
        _put_mark,
    ),
    _Rule(("bearer",), re.compile(r"(\bbearer[ \t]++)[\w.~+/=-]{20,}+", re.IGNORECASE), rf"\g<1>{MARK}"),
    _Rule(
        ("basic",),
        re.compile(r"(\bbasic[ \t]{1,8}+)([\w+/]{8,}+={0,2}+)", re.IGNORECASE),
        _without_basic,
    ),
    _Rule(
        ("authorization",),
        re.compile(
            r"(authorization[ \t]{1,8}+(?:basic|bearer|digest|negotiate|ntlm)[ \t]{1,8}+)[^\s\"']++", re.IGNORECASE
        ),
        rf"\g<1>{MARK}",
    ),
    _keyed(*_WORDS, before=rf"{_WORD}{_REST}{_CLOSED}{_EQUALS}", put=_put_mark_but_in_a_path),
    _keyed(*_WORDS, before=rf"(?<![:/]){_WORD}{_NO_CODE}{_REST}{_CLOSED}{_COLON}"),
    _keyed(
        *("sig", "credential", "pass", "pw", "sas"),
        before=rf"{_WHOLE_WORD}{_CLOSED}{_EQUALS}",
        put=_put_mark_but_in_a_path,
    ),
    # `--token abc`, `-storepass abc`, `'--client-secret', 'abc'`.
    _Rule(
        (*_WORDS, "pass"),
        re.compile(
            rf"(?<![\w-])--?(?=[\w.-]{{0,40}}{_WORD}|(?:(?:src|dest|new)?(?:store|key))?pass(?:wd)?[\s\"',=]){_REST}"
            rf"{_BESIDE}{_NO_WORD}{_ARGUMENT}",
            re.IGNORECASE,
        ),
        _put_mark,
    ),
    _Rule(
        ("identified", "password", "secret"),
        re.compile(
            rf"\b(?:identified(?: with \w{{1,40}}+)? by|password|secret(?:_access)?_key)[ \t]++(?P<value>{_QUOTED})",
            re.IGNORECASE,
        ),
        _put_mark,
    ),
    # `fs.s3a.secret.key abc` on a line of its own, or before what is no word.
    _Rule(
        _WORDS,
        re.compile(
            rf"(?:{_MARGIN}{_PROPERTY}{_NO_WORD}{_NO_VALUE}(?P<value>[^\s\"']++)(?=[ \t]*+$)"
            rf"|{_MARGIN}(?:password|secret|token)[ \t]{{1,64}}+{_NO_VALUE}(?P<alone>{_NUMBERED}[^\s\"']++)(?=[ \t]*+$)"
            rf"|{_PROPERTY}{_NO_VALUE}(?P<inside>{_NUMBERED}(?!\d{{1,4}}\b)[^\s\"'(),;|]{{6,}}+))",
            re.IGNORECASE | re.MULTILINE,
        ),
        lambda match: match[0].removesuffix(match[match.lastgroup or 0]) + MARK,
    ),
    _keyed("pass", before=rf"{_STORE}[ \t]{{1,64}}+{_NO_WORD}(?![-=:(])"),
    # `-u user:password` of curl and its like, and not `-u 1000:1000` or the URL of a database.
    _Rule(
        ("-u", "user", "u "),
        re.compile(
            rf"""(?<![\w-])-(?:-(?:proxy-|http-|ftp-)?user|[a-z]{{0,6}}u){_BESIDE}"""
            r"""(?!["']?(?:jdbc:|[\w+.-]{1,20}:/|\d{1,6}:\d{1,6}\b))"""
            rf"""(?=["']?[\w.@$\\/-]{{1,128}}[:%]){_ARGUMENT}""",
            re.IGNORECASE,
        ),
        _put_mark,
    ),
    _Rule(
        ("curl", "lftp"),
        re.compile(
            r"""(\b(?:curl|lftp)\b(?:(?!\b(?:curl|lftp)\b|[ "']-u)[^\n])*+[ "']-u[ ]?)"""
            r"""["']?[\w.@\\-]{1,128}[:,][^\s"']++""",
            re.IGNORECASE,
        ),
        rf"\g<1>{MARK}",
    ),
    _Rule(_PROGRAM_HINTS, re.compile(_COMMAND), _without_passwords),
    _Rule(("pass:",), re.compile(rf"(-pass(?:in|out)?{_BESIDE}[\"']?pass:)[^\s\"']++", re.IGNORECASE), rf"\g<1>{MARK}"),
    _Rule(
        ("sqlplus", "sqlldr", "expdp", "impdp"),
        re.compile(
            r"(\b(?:sqlplus|sqlldr|expdp|impdp)[ \t]{1,8}+(?:-\w{1,16}[ \t]{1,8}+)?[\w$#]{1,128}+/)[^\s\"']++",
            re.IGNORECASE,
        ),
        rf"\g<1>{MARK}",
    ),
    _Rule(
        ("login",),
        re.compile(r"(\blogin\s{1,8}+\S{1,128}+\s{1,8}+password\s{1,8}+)\S++", re.IGNORECASE),
        rf"\g<1>{MARK}",
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
    # An access key, and what may be its secret: 40 characters a few words later.
    _Rule(
        ("akia", "asia", "abia", "acca"),
        re.compile(
            r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}+"
            r"(?:([^A-Za-z0-9/+]{1,16}(?:\w{1,32}+[^\w/+]{1,8}+){0,3}?)[A-Za-z0-9/+]{40}+(?![A-Za-z0-9/+]))?"
        ),
        lambda match: MARK if match[1] is None else f"{MARK}{match[1]}{MARK}",
    ),
    _Rule(
        (
            *(
                "eyj",
                "gh",
                "github_pat_",
                "xox",
                "xapp-",
                "dapi",
                "glpat-",
                "aiza",
                "ya29.",
                "hvs.",
                "npm_",
                "sk-",
                "_live_",
            ),
            *("sg.", "pypi-", "hf_", "age-secret", "q~", "=="),
        ),
        re.compile(
            r"(?<![\w.-])(?:eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3}|gh[pousr]_\w{20,}+|github_pat_\w{20,}+"
            r"|xox[abeprs]-[\w-]{10,}+|dapi[0-9a-f]{32}(?:-\d)?"
            r"|glpat-[\w-]{20,}+|AIza[\w-]{35}|ya29\.[\w-]{20,}+|hvs\.[\w-]{20,}+|npm_\w{36}|sk-[\w-]{32,}+"
            r"|xapp-[\w-]{20,}+|[sr]k_live_\w{16,}+|SG\.[\w-]{16,}+\.[\w-]{16,}+|pypi-AgE[\w-]{20,}+|hf_[A-Za-z]{30,}+"
            # The secret of an application in Entra, the key of an account of Azure.
            r"|AGE-SECRET-KEY-\w{30,}+|[\w~-]{3}\dQ~[\w.~-]{31,34}|(?<![/+])[A-Za-z0-9+/]{86}==)"
        ),
        MARK,
    ),
)
