"""`spigot`: a sample of a frame, written beside the job for people to look at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.records import json_text

if TYPE_CHECKING:
    from pyspark import RDD

    from airflow_bookmarks.glue.dynamic.base import FrameBase

_OPTIONS = ("topk", "prob")


def write_sample(frame: FrameBase, path: str, options: Mapping[str, Any] | str) -> None:
    """Write a sample of the records into a folder, one JSON object in each line, at once and beside the bookmark.

    What is there stays; each call adds files.

    Args:
        frame: the frame.
        path: the folder.
        options: `topk`, a number of records: the first of them; `prob`, from 0 to 1: each with this probability. With
            both, the first of those chosen. Without any, all. A text is JSON.

    Raises:
        OptionError: an option is unknown or out of range, or the path is empty.
    """
    topk, prob = _options(options)
    if not path:
        raise OptionError("spigot: the path is empty. Nothing was read or changed.")
    run = frame.run
    run.check()
    run.note_use()
    records = frame.records()
    chosen: RDD[Any] = records if prob is None else records.sample(False, prob)
    if topk is not None:
        chosen = frame.spark.sparkContext.parallelize(chosen.take(topk), 1)
    lines = chosen.map(lambda record: (json_text(_present(record)),))
    frame.spark.createDataFrame(lines, "value string").write.mode("append").text(path)


def _options(given: Mapping[str, Any] | str) -> tuple[int | None, float | None]:
    try:
        options = json.loads(given or "{}") if isinstance(given, str) else dict(given)
        topk, prob = options.pop("topk", None), options.pop("prob", None)
        found = (None if topk is None else int(topk), None if prob is None else float(prob))
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(f"spigot: options {given!r} can't be read: {error}. Nothing was read or changed.") from error
    if options:
        raise OptionError(
            f"spigot: unknown option {next(iter(options))!r}; there are {' and '.join(_OPTIONS)}. "
            "Nothing was read or changed."
        )
    if (found[0] is not None and found[0] < 0) or (found[1] is not None and not 0 <= found[1] <= 1):
        raise OptionError(
            f"spigot: topk is a number of records and prob lies from 0 to 1; got {given!r}. "
            "Nothing was read or changed."
        )
    return found


def _present(value: Any) -> Any:
    """Return a record without its nulls, as Spark writes JSON."""
    if isinstance(value, Mapping):
        return {name: _present(held) for name, held in value.items() if held is not None}
    return [_present(each) for each in value] if isinstance(value, list) else value
