"""A Delta log of our own over some files of a table, by which Delta itself reads exactly these.

    <folder>/_delta_log/00000000000000000000.json      protocol and metadata of the table, and an add for each file

A time stands before them, because a table may say that each of its commits has one.

The files stay where they are: the log names them by absolute URIs, as that of a shallow clone does. So the reader is
Delta's own, with its columns by name or id, partition values, deletion vectors, wider types and statistics; and it
opens these files and no others. A filter on `_metadata.file_path` would open all files of the table, and could not
read one that was compacted since.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.sources.delta.commit import Action
    from airflow_bookmarks.sources.delta.snapshot import TableState

LOG_FILE = f"_delta_log/{0:020}.json"

_SAFE = "/:!$&'()*+,;=@-._~"  # in the path of a URI, and in what stands before it
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_UUID_CHARS = 20
# Delta writes the id of a file of deletion vectors in Z85; Python reads the same numbers in other characters.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)


def excerpt_of(state: TableState, files: Iterable[Action], table: str) -> bytes:
    """Return the one commit of a log over some files of a table.

    Args:
        state: what the table is.
        files: the files, as the log of the table has them.
        table: the URI of its folder, as Spark reads it.
    """
    root = _root(table)
    adds = [_absolute(file, root) for file in files]
    time_ms = max((file.get("modificationTime", 0) for file in adds), default=0)
    info: Action = {"timestamp": time_ms, "inCommitTimestamp": time_ms, "operation": "WRITE", "operationParameters": {}}
    actions: list[Action] = [{"commitInfo": info}, {"protocol": state.protocol}, {"metaData": state.metadata}]
    actions += [{"add": file} for file in adds]
    return "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions).encode()


def path_of(file: Action, table: str) -> tuple[str, bool]:
    """Return where a file of a table lies, unescaped; and whether its log names it by that, as that of a clone does.

    Args:
        table: the folder of the table.
    """
    path = file["path"]
    return (unquote(path), True) if _is_absolute(path) else (f"{table.rstrip('/')}/{unquote(path)}", False)


def _root(table: str) -> str:
    """Return the URI of a folder with a slash at its end, escaped."""
    uri = f"file://{table}" if table.startswith("/") else table
    return quote(uri.rstrip("/"), safe=_SAFE) + "/"


def _is_absolute(path: str) -> bool:
    return _ABSOLUTE.match(path) is not None


def _absolute(file: Action, root: str) -> Action:
    path, vector = file["path"], file.get("deletionVector")
    made = {**file, "path": path if _is_absolute(path) else f"{root}{path}", "dataChange": True}
    if vector is not None and vector["storageType"] == "u":
        made["deletionVector"] = {
            **vector,
            "storageType": "p",
            "pathOrInlineDv": f"{root}{_vector_file(vector['pathOrInlineDv'])}",
        }
    return made


def _vector_file(text: str) -> str:
    """Return the path below its table of the file that a relative deletion vector names: a folder, maybe, and an id."""
    folder, packed = text[:-_UUID_CHARS], text[-_UUID_CHARS:]
    name = f"deletion_vector_{uuid.UUID(bytes=base64.b85decode(packed.translate(_TO_B85)))}.bin"
    return f"{quote(folder)}/{name}" if folder else name
