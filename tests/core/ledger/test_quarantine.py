"""What a quarantine keeps, and how the root of a ledger carries it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from airflow_bookmarks.core.errors import QuarantineFullError, StateCorruptError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.ledger.quarantine import ERROR_LENGTH, MAX_BYTES, MAX_FILES, Quarantine, QuarantinedFile
from airflow_bookmarks.core.selection.listing import FileInfo, Listing

BROKEN = FileInfo("s3a://lake/raw/b.csv", 10, 1_000)


def held(*files: FileInfo, error: str = "1 of 2 records do not fit the schema", run: int = 7) -> Quarantine:
    return Quarantine().add(QuarantinedFile.of(file, error, run) for file in files)


def sealed(content: str) -> bytes:
    checksum = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    return f'{{"blake2b":"{checksum}","ledger":{content}}}'.encode()


def body_of(ledger: Ledger) -> dict[str, object]:
    found: dict[str, object] = json.loads(ledger.root())["ledger"]
    return found


def test_only_the_version_that_could_not_be_parsed_is_held() -> None:
    replaced = FileInfo(BROKEN.path, 11, 2_000)
    other = FileInfo("s3a://lake/raw/c.csv", 10, 1_000)

    assert held(BROKEN).holds(Listing.of([BROKEN, replaced, other])).tolist() == [True, False, False]


def test_file_is_held_under_whichever_scheme_it_is_listed() -> None:
    same = FileInfo("s3://lake/raw/b.csv", 10, 1_000)

    assert held(BROKEN).holds(Listing.of([same])).tolist() == [True]


def test_newer_version_takes_the_place_of_the_older() -> None:
    newer = FileInfo(BROKEN.path, 11, 2_000)

    again = held(BROKEN).add([QuarantinedFile.of(newer, "still broken", 8)])

    assert [(file.version, file.run_number) for file in again] == [(newer.version, 8)]


def test_error_is_kept_in_one_line_of_bounded_length() -> None:
    record = QuarantinedFile.of(BROKEN, "first\n\tat org.apache " + "x" * 1000, 1)

    assert len(record.error) == ERROR_LENGTH
    assert record.error.startswith("first at org.apache xxx")


def test_more_files_than_a_quarantine_is_for_are_an_error_that_says_what_to_do() -> None:
    files = [FileInfo(f"/raw/{number}", 1, 1) for number in range(MAX_FILES + 1)]

    assert len(held(*files[:MAX_FILES], error="no")) == MAX_FILES
    with pytest.raises(QuarantineFullError, match=r"1,001 files can't be parsed.*Nothing was committed.*retry:\*"):
        held(*files, error="no")


def test_more_bytes_than_a_quarantine_is_for_are_an_error() -> None:
    files = [FileInfo(f"/raw/{'x' * 100}/{number}", 1, 1) for number in range(500)]

    with pytest.raises(QuarantineFullError, match=f"{MAX_BYTES:,} bytes at most"):
        held(*files, error="y" * ERROR_LENGTH)


def test_root_without_quarantine_has_the_bytes_that_it_had_before() -> None:
    ledger = Ledger.empty().add(Listing.of([FileInfo("/raw/a", 1, 1)]))

    emptied = replace(replace(ledger, quarantine=held(BROKEN)), quarantine=Quarantine())

    assert emptied.root() == ledger.root()
    assert body_of(ledger)["format"] == 1
    assert "quarantine" not in body_of(ledger)


def test_root_carries_the_quarantine_in_a_format_that_older_readers_refuse() -> None:
    ledger = replace(Ledger.empty(), forgotten_before_ms=5, quarantine=held(BROKEN))

    read = Ledger.from_root(ledger.root(), lambda names: {})

    assert body_of(ledger)["format"] == 3
    assert list(read.quarantine) == list(ledger.quarantine)
    assert read.forgotten_before_ms == 5
    assert read.root() == ledger.root()


def test_quarantined_file_is_not_one_that_was_read() -> None:
    ledger = replace(Ledger.empty(), quarantine=held(BROKEN))

    assert len(ledger) == 0
    assert ledger.classify(Listing.of([BROKEN])).tolist() == [0]


def test_quarantine_follows_a_ledger_as_it_grows() -> None:
    ledger = replace(Ledger.empty(), quarantine=held(BROKEN))

    assert len(ledger.add(Listing.of([FileInfo("/raw/a", 1, 1)])).quarantine) == 1


@pytest.mark.parametrize("rows", [[["/raw/a"]], [["/raw/a", "v", 1, 1, "e", "7"]], [[1, "v", 1, 1, "e", 7]], 7, None])
def test_damaged_record_is_damage_and_not_an_empty_quarantine(rows: object) -> None:
    content = {**body_of(Ledger.empty()), "format": 3, "quarantine": rows}
    with pytest.raises(StateCorruptError, match="part that means nothing"):
        Ledger.from_root(sealed(json.dumps(content, sort_keys=True, separators=(",", ":"))), lambda names: {})


def test_stored_plan_keeps_what_its_run_could_not_parse() -> None:
    plan = FilePlan(Listing.of([]), ("/raw",), 1, 0, {"quarantined": 1}, quarantined=tuple(held(BROKEN)))

    read = FilePlan.decode(plan.encode())

    assert read.quarantined == plan.quarantined
    assert read.stats()["quarantined"] == 1


def test_plan_without_such_files_says_nothing_of_them() -> None:
    plan = FilePlan(Listing.of([]), ("/raw",), 1, 0)

    assert FilePlan.decode(plan.encode()).quarantined == ()
    assert "quarantined" not in plan.stats()
