"""Which runs are history, compared with a model that keeps each history as a plain list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.timeline import Ancestry, Timeline, last_common_run


class Model:
    """Each epoch's history written out: the (number, epoch) of every run that is living in it."""

    def __init__(self) -> None:
        self.epoch, self.number = 1, 0
        self.living: dict[int, list[tuple[int, int]]] = {1: []}
        self.lines: list[Timeline] = []

    def commit(self) -> None:
        self.number += 1
        self.living[self.epoch].append((self.number, self.epoch))

    def rewind(self, keep: int) -> None:
        kept = self.living[self.epoch][:keep]
        last = kept[-1][0] if kept else 0
        self.lines.append(Timeline(self.epoch + 1, self.epoch, last, self.number))
        self.epoch += 1
        self.living[self.epoch] = list(kept)


steps = st.lists(st.one_of(st.none(), st.integers(0, 8)), max_size=25)


def play(moves: list[int | None]) -> Model:
    model = Model()
    for move in moves:
        if move is None:
            model.commit()
        else:
            model.rewind(move)
    return model


@given(steps)
def test_living_runs_are_those_of_the_line_and_of_what_its_parents_kept(moves: list[int | None]) -> None:
    model = play(moves)
    everything = {run for runs in model.living.values() for run in runs}
    for epoch, living in model.living.items():
        ancestry = Ancestry.of(epoch, model.lines)
        assert {run for run in everything if ancestry.is_living(*run)} == set(living)


@given(steps, st.data())
def test_consumer_is_told_the_last_run_it_shares_with_the_present(moves: list[int | None], data: st.DataObject) -> None:
    model = play(moves)
    seen = data.draw(st.integers(1, model.epoch))
    history = model.living[seen]
    read = history[: data.draw(st.integers(0, len(history)))]
    consumed = read[-1][0] if read else 0
    lost = [number for number, epoch in read if (number, epoch) not in model.living[model.epoch]]
    shared = [number for number, epoch in read if number < min(lost, default=0)]
    expected = max(shared, default=0) if lost else None
    assert last_common_run(seen, model.epoch, consumed, model.lines) == expected


def test_line_that_is_missing_is_damage_and_no_other_history() -> None:
    with pytest.raises(StateCorruptError, match="the line of epoch 2 is missing"):
        Ancestry.of(3, [Timeline(3, parent=2, kept=1, start=4)])
    with pytest.raises(StateCorruptError, match="the line of epoch 5 is missing"):
        last_common_run(1, 5, 3, [])


def test_lines_that_lead_back_to_themselves_end() -> None:
    with pytest.raises(StateCorruptError, match="the line of epoch 3 is among its own ancestors"):
        Ancestry.of(3, [Timeline(2, parent=3), Timeline(3, parent=2)])
