"""Promise DEP-10: the graph of jobs and what they read, upstream and downstream."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from airflow_bookmarks.core.errors import JobUnknownError
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.changes.naming import delete, rename
from airflow_bookmarks.lifecycle.inspect.graph import JobGraph, Node, ReadEdge, graph
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.table import Delete, Key
from tests.lifecycle.shop import FILES, Shop

WHY: dict[str, Any] = {"reason": "a test", "who": "me"}


def run(shop: Shop, job: str, *upstreams: str, with_files: bool = False) -> None:
    """Make one run that reads some jobs, and the raw folder if so wanted."""
    active = shop.begin(job)
    for upstream in upstreams:
        active.plan(f"of_{upstream}", UpstreamSource(shop.store, job, upstream))
    if with_files:
        active.plan("raw", FileSource(FILES, [str(shop.raw)]))
    active.commit()


def diamond(shop: Shop) -> None:
    """Let `left` and `right` read `top`, and `bottom` both of them."""
    shop.put("a.txt", "a")
    shop.run("top")
    run(shop, "left", "top")
    run(shop, "right", "top", with_files=True)
    run(shop, "bottom", "left", "right")


def edges(found: JobGraph) -> list[tuple[str, str]]:
    return [(read.job, read.source) for read in found.reads if read.lag is not None]


def test_graph_names_jobs_contexts_and_sources(shop: Shop) -> None:
    diamond(shop)

    found = graph(shop.store)

    raw = f"files:{shop.raw}"
    assert list(found.nodes) == ["bottom", "left", "right", "top", raw]
    assert edges(found) == [("bottom", "left"), ("bottom", "right"), ("left", "top"), ("right", "top")]
    assert [(read.job, read.contexts) for read in found.reads if read.source == raw] == [
        ("right", ("raw",)),
        ("top", ("raw",)),
    ]
    assert [read.contexts for read in found.reads_of("left")] == [("of_top",)]
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()


def test_tree_shows_each_part_once_as_cargo_does(shop: Shop) -> None:
    diamond(shop)
    assert graph(shop.store).as_text().splitlines() == [
        "bottom",
        "├── left  [OK]",
        "│   └── top  [OK]",
        f"│       └── files:{shop.raw}",
        "└── right  [OK]",
        "    ├── top  [OK] (*)",
        f"    └── files:{shop.raw}",
    ]


def test_state_stands_at_the_edge(shop: Shop) -> None:
    diamond(shop)
    shop.put("b.txt", "b")
    shop.run("top")
    run(shop, "left", "top")
    rewind(shop.store, "left", 1, **WHY)
    found = graph(shop.store)
    states = {(read.job, read.source): read.lag.state for read in found.reads if read.lag is not None}
    assert states == {
        ("bottom", "left"): LagState.OK,  # it has read run 1 alone
        ("bottom", "right"): LagState.OK,
        ("left", "top"): LagState.REWOUND,
        ("right", "top"): LagState.OK,
    }
    assert "[OK, 1 run behind]" in found.as_text()


def test_mermaid_draws_it_in_the_direction_of_the_data(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    run(shop, "down", "up")
    assert graph(shop.store).as_mermaid().splitlines() == [
        "flowchart LR",
        '    n0["down"]',
        '    n1["up"]',
        f'    n2[("files:{shop.raw}")]',
        '    n1 -->|"OK"| n0',
        "    n2 --> n1",
    ]


def test_mermaid_marks_what_is_in_trouble_and_quotes_what_it_would_read_as_its_own(shop: Shop) -> None:
    odd = shop.root / 'odd "folder" <b>#1;'
    odd.mkdir()
    (odd / "a.txt").write_text("a")
    active = shop.begin("up")
    active.plan("raw", FileSource(FILES, [str(odd)]))
    active.commit()
    run(shop, "down", "up")
    reset(shop.store, "up", **WHY)
    drawn = graph(shop.store).as_mermaid()
    assert "odd #quot;folder#quot; #lt;b#gt;#35;1;" in drawn
    assert 'n1 -->|"REWOUND"| n0' in drawn
    assert "class n0 behind" in drawn


def test_graph_of_a_job_is_what_it_depends_on_and_what_depends_on_it(shop: Shop) -> None:
    diamond(shop)
    run(shop, "alone")
    run(shop, "aside", "right")

    found = graph(shop.store, "left")

    assert list(found.nodes) == ["bottom", "left", "top", f"files:{shop.raw}"]
    assert edges(found) == [("bottom", "left"), ("left", "top")]
    with pytest.raises(JobUnknownError):
        graph(shop.store, "no.such")


def test_cycle_of_jobs_is_drawn_and_ends(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop, "hen", with_files=True)
    run(shop, "egg", "hen")
    run(shop, "hen", "egg")
    found = graph(shop.store)
    assert edges(found) == [("egg", "hen"), ("hen", "egg")]
    assert found.as_text().splitlines() == [
        "egg",
        "└── hen  [OK]",
        "    ├── egg  [OK] (*)",
        f"    └── files:{shop.raw}",
    ]
    assert edges(graph(shop.store, "egg")) == edges(found)


def test_chain_that_is_longer_than_the_stack_is_drawn() -> None:
    names = [f"job.{number:04}" for number in range(3000)]
    reads = tuple(ReadEdge(after, before, ("up",)) for before, after in pairwise(names))
    found = JobGraph("test", {name: Node(name, "job") for name in names}, reads)
    assert len(found.as_text().splitlines()) == 3000
    assert len(found.around("job.1500").nodes) == 3000


def test_upstream_without_a_bookmark_is_part_of_it(shop: Shop) -> None:
    diamond(shop)
    shop.store.table.transact([Delete(shop.store.keys("top").head), Delete(Key("test#JOBS", "top"))])
    found = graph(shop.store)
    assert found.nodes["top"].is_known is False
    assert "top (no bookmark)  [UNKNOWN]" in found.as_text()


def test_deleted_job_reads_nothing_and_is_shown_only_where_others_read_it(shop: Shop) -> None:
    diamond(shop)
    delete(shop.store, "bottom", typed_name="bottom", **WHY)
    delete(shop.store, "left", typed_name="left", **WHY)
    assert list(graph(shop.store).nodes) == ["right", "top", f"files:{shop.raw}"]
    delete(shop.store, "top", typed_name="top", **WHY)
    found = graph(shop.store)
    assert found.nodes["top"].is_deleted
    assert "top (deleted)  [REWOUND]" in found.as_text()


def test_renamed_job_is_one_job_with_both_names(shop: Shop) -> None:
    diamond(shop)
    rename(shop.store, "top", "lake.top", **WHY)
    found = graph(shop.store)
    assert "lake.top" not in found.nodes
    assert "top (also lake.top)  [OK]" in found.as_text()


def test_consumer_that_was_reset_and_has_not_run_since_is_still_part_of_it(shop: Shop) -> None:
    diamond(shop)
    reset(shop.store, "bottom", **WHY)
    assert edges(graph(shop.store, "bottom"))[:2] == [("bottom", "left"), ("bottom", "right")]


def test_namespace_without_jobs_has_an_empty_graph(shop: Shop) -> None:
    assert (graph(shop.store).as_text(), graph(shop.store).as_mermaid()) == ("", "flowchart LR")
