"""Files that others still have to read: they are not deleted or archived before."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.files.filesystem import paths_and_patterns
from airflow_bookmarks.lifecycle.changes.change import relocate, rename_context, reset
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.lifecycle.run.checks.other_use import Region
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.table import Put
from tests.lifecycle.shop import FILES, Shop

DELETE = Disposal("delete")


def source(shop: Shop, *paths: str, **options: Any) -> FileSource:
    """Return a source of folders or patterns below the shop; its raw folder where none is given."""
    roots, globs = paths_and_patterns(FILES, [str(shop.root / path) for path in paths or ("raw",)])
    return FileSource(FILES, roots, FileOptions(**options), globs=globs, clock=shop.environment.clock)


def run(
    shop: Shop, job: str, *paths: str, disposal: Disposal | None = None, ctx: str = "raw", **options: Any
) -> list[str]:
    """Make one whole run of a job; return the paths read, by their names."""
    driver = shop.begin(job)
    if disposal is not None:
        driver.dispose(ctx, disposal)
    plan = driver.plan(ctx, source(shop, *paths, **options))
    driver.commit()
    return sorted(path.rpartition("/")[2] for path in plan.files.paths)


def there(shop: Shop) -> list[str]:
    return sorted(str(path.relative_to(shop.raw)) for path in shop.raw.rglob("*.txt"))


# ---- within a run


@pytest.mark.parametrize(
    ("paths", "options"),
    [
        (("raw",), {}),
        (("raw",), {"bound": Bound(max_files=1)}),
        (("raw",), {"partition_filter": "day = 9"}),
        (("raw/day=*",), {}),
        (("raw/day=1",), {}),
        (("raw/day=1/a.txt",), {}),
        (("ra*",), {"exclusions": ("*.bak",)}),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_context_over_files_that_another_one_puts_away_is_refused(
    shop: Shop, paths: tuple[str, ...], options: dict[str, Any], is_first: bool
) -> None:
    shop.put("day=1/a.txt", "a")
    shop.put("day=2/b.txt", "b")
    driver = shop.begin()
    sources = {"all": source(shop), "part": source(shop, *paths, **options)}
    first, second = ("all", "part") if is_first else ("part", "all")
    driver.dispose("all", DELETE)
    driver.plan(first, sources[first])

    with pytest.raises(OptionError, match="contexts 'all' and 'part' read the same files"):
        driver.plan(second, sources[second])

    driver.commit()  # the script has caught it
    assert there(shop) == ["day=1/a.txt", "day=2/b.txt"]


@pytest.mark.parametrize(
    ("one", "two"), [("raw/a-*.txt", "raw/b-*.txt"), ("raw", "rawer"), ("raw", "raw/sub"), ("raw/x", "raw/y")]
)
def test_contexts_that_share_no_file_are_read_together(shop: Shop, one: str, two: str) -> None:
    assert not Region(source(shop, one).places, FileOptions()).may_meet(Region(source(shop, two).places, FileOptions()))


def test_two_contexts_that_keep_their_files_may_read_the_same(shop: Shop) -> None:
    shop.put("a.txt", "a")
    driver = shop.begin()

    assert len(driver.plan("one", source(shop))) == len(driver.plan("two", source(shop))) == 1
    driver.abort("a test")


# ---- other jobs


def test_files_stay_until_the_other_job_has_read_them(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.put("a.txt", "a")
    run(shop, "other")
    shop.put("b.txt", "b")

    assert run(shop, "mine", disposal=DELETE) == ["a.txt", "b.txt"]

    assert there(shop) == ["b.txt"]
    assert "1 files stay: other, context raw, which read the same folder, have not read them yet" in caplog.text
    assert run(shop, "other") == ["b.txt"]
    assert run(shop, "mine", disposal=DELETE) == []
    assert there(shop) == []


@pytest.mark.parametrize("folder", ["raw,eu", "cold shard data"])
def test_files_stay_for_another_job_whatever_their_folder_is_called(shop: Shop, folder: str) -> None:
    shop.put("a.txt", "a")
    shop.raw.rename(shop.root / folder)
    run(shop, "other", folder)
    (shop.root / folder / "b.txt").write_text("b")

    assert run(shop, "mine", folder, disposal=DELETE) == ["a.txt", "b.txt"]

    assert run(shop, "other", folder) == ["b.txt"]


@pytest.mark.parametrize(
    ("mine", "theirs"), [("link", "link"), ("link", "raw"), ("raw", "link"), ("raw", "link/day=1")]
)
def test_files_stay_until_another_job_has_read_them_by_a_link(shop: Shop, mine: str, theirs: str) -> None:
    shop.put("day=1/a.txt", "a")
    (shop.root / "link").symlink_to(shop.raw)
    run(shop, "other", theirs)
    shop.put("day=1/b.txt", "b")

    assert run(shop, "mine", mine, disposal=DELETE) == ["a.txt", "b.txt"]
    assert there(shop) == ["day=1/b.txt"]

    assert run(shop, "other", theirs) == ["b.txt"]
    assert run(shop, "mine", mine, disposal=DELETE) == []
    assert there(shop) == []


@pytest.mark.parametrize("is_mine_listed", [True, False])
@pytest.mark.parametrize("folder", ["2013/01", "year=2013/month=01"])
def test_files_stay_for_a_job_that_reads_partitions_of_a_catalog(
    shop: Shop, folder: str, *, is_mine_listed: bool
) -> None:
    listed = ListedPartitions({"year": "int", "month": "int"}, {str(shop.raw / folder): ("2013", "1")})

    def read(job: str, listed: ListedPartitions | None, disposal: Disposal | None = None) -> list[str]:
        roots, clock = [FILES.canonical(str(shop.raw))], shop.environment.clock
        options = FileOptions(recursive=listed is None)
        driver = shop.begin(job)
        if disposal is not None:
            driver.dispose("raw", disposal)
        plan = driver.plan("raw", FileSource(FILES, roots, options, clock=clock, listed=listed))
        driver.commit()
        return sorted(path.rpartition("/")[2] for path in plan.files.paths)

    shop.put(f"{folder}/a.txt", "a")
    read("other", listed)
    shop.put(f"{folder}/b.txt", "b")

    assert read("mine", listed if is_mine_listed else None, DELETE) == ["a.txt", "b.txt"]

    assert there(shop) == [f"{folder}/b.txt"]
    assert read("other", listed) == ["b.txt"]


def test_first_run_warns_of_who_reads_the_same_files(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.put("a.txt", "a")
    run(shop, "other")

    run(shop, "mine", disposal=DELETE)

    assert "files are to be put away that others read as well: other, context raw" in caplog.text


def test_job_that_reads_elsewhere_or_other_names_holds_nothing_back(shop: Shop) -> None:
    (shop.root / "away").mkdir()
    shop.put("a.bak", "x")
    run(shop, "elsewhere", "away")
    run(shop, "names", name_pattern="*.bak")
    run(shop, "pattern", "raw/*.bak")
    shop.put("a.txt", "a")

    run(shop, "mine", name_pattern="*.txt", disposal=DELETE)

    assert there(shop) == []


def test_version_that_the_other_job_has_not_read_stays(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop, "other")
    shop.put("a.txt", "corrected", seconds=1_700_000_009)

    run(shop, "mine", disposal=DELETE)

    assert there(shop) == ["a.txt"]


def test_job_that_was_reset_reads_again_and_keeps_its_files(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop, "other")
    reset(shop.store, "other", reason="a test", who="ada")

    run(shop, "mine", disposal=DELETE)

    assert there(shop) == ["a.txt"]


@pytest.mark.parametrize("is_reset", [False, True])
def test_job_whose_folder_was_relocated_keeps_what_it_has_not_read_in_the_new_one(
    shop: Shop, *, is_reset: bool
) -> None:
    why: dict[str, Any] = {"reason": "moved", "who": "ada"}
    shop.put("a.txt", "a")
    run(shop, "other")
    shop.raw.rename(shop.root / "new")
    relocate(shop.store, "other", "raw", str(shop.raw), str(shop.root / "new"), **why)
    if is_reset:
        reset(shop.store, "other", **why)
    (shop.root / "new" / "b.txt").write_text("b\n")

    run(shop, "mine", "new", disposal=DELETE)

    assert run(shop, "other", "new") == (["a.txt", "b.txt"] if is_reset else ["b.txt"])


def test_context_that_was_renamed_is_one_reader_under_its_present_name(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    run(shop, "other")
    rename_context(shop.store, "other", "raw", "orders", reason="a better name", who="ada")
    shop.put("b.txt", "b")

    run(shop, "mine", disposal=DELETE)

    assert there(shop) == ["b.txt"]
    stays = [message for message in caplog.messages if "1 files stay:" in message]
    assert [("other, context orders" in each, "other, context raw" in each) for each in stays] == [(True, False)]


def test_context_of_the_own_job_that_this_run_does_not_read_holds_its_files(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop, "mine", ctx="weekly")
    shop.put("b.txt", "b")

    run(shop, "mine", disposal=DELETE)

    assert there(shop) == ["b.txt"]


def test_shards_of_a_job_are_one_reader(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    parts: list[Callable[[], object]] = [
        lambda: run(shop, "other~00", name_pattern="a.txt"),
        lambda: run(shop, "other~01", name_pattern="b.txt"),
    ]
    parts[0]()
    run(shop, "mine", disposal=DELETE)
    assert there(shop) == []


def test_job_that_can_not_be_read_keeps_all_files(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.put("a.txt", "a")
    run(shop, "other")
    key = shop.store.keys("other").head
    damaged = {**shop.store.table.get([key])[key], "contexts": "no map"}
    shop.store.table.transact([Put(key, damaged)])
    with caplog.at_level(logging.WARNING):
        run(shop, "mine", disposal=DELETE)

    assert there(shop) == ["a.txt"]
    assert "some read files could not be put away" in caplog.text


def test_published_files_that_are_read_as_files_stay_until_their_consumers_have_them(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    def consume() -> None:
        consumer = shop.begin("consumer")
        shop.copy(consumer, upstream="maker")
        consumer.commit()

    def make(name: str) -> None:
        shop.put(name, name)
        maker = shop.begin("maker")
        shop.copy(maker)
        maker.commit()

    def published() -> int:
        return len([path for path in (shop.root / "maker").rglob("*.txt") if "_bookmarks" not in path.parts])

    make("a.txt")
    consume()
    make("b.txt")

    run(shop, "mine", "maker", disposal=DELETE, recursive=True)

    assert published() == 2
    assert "consumer, context raw" in caplog.text
    consume()
    run(shop, "mine", "maker", disposal=DELETE, recursive=True)
    assert published() == 0


def test_output_that_later_runs_did_not_write_stays_until_its_consumers_have_it(shop: Shop) -> None:
    def make(*outputs: str) -> None:
        maker = shop.begin("maker")
        maker.plan("raw", source(shop))
        for name in outputs:
            target = str(shop.root / name)
            folder = Path(
                maker.place(name, StagingRequest("files", target, stats={"format": "text", "mode": "append"}))
            )
            folder.mkdir(parents=True)
            (folder / "part.txt").write_text("x\n")
            made = collect_staged(FILES, str(folder), target, maker.file_token, Mode.APPEND, rows=1, schema="{}")
            maker.staged(name, made)
        maker.commit()

    def consume() -> int:
        consumer = shop.begin("consumer")
        plan = consumer.plan("maker", UpstreamSource(shop.store, "consumer", "maker", output="rare"))
        consumer.commit()
        return len(plan)

    for name, outputs in (("a", ["rare", "usual"]), ("b", ["rare", "usual"]), ("c", ["usual"])):
        shop.put(f"{name}.txt", name)
        make(*outputs)
        if name == "a":
            assert consume() == 1

    run(shop, "eater", "rare", disposal=DELETE, ctx="rare", empties=True)
    assert consume() == 1
    shop.put("d.txt", "d")
    make("rare")
    assert consume() == 1
    run(shop, "eater", "rare", disposal=DELETE, ctx="rare", empties=True)
    assert [path for path in (shop.root / "rare").rglob("*.txt") if "_bookmarks" not in path.parts] == []
