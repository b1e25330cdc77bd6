"""Any text is a name, two texts are never one, and people see the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import NameInvalidError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.glue.names import name_of, text_of

_TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)


@given(_TEXTS)
def test_any_text_is_a_name_and_comes_back(text: str) -> None:
    name = check_name("job", name_of("job", text))

    assert text_of(name) == text or "~~" in name


@given(st.sets(_TEXTS, min_size=2, max_size=5))
def test_two_texts_have_two_names(texts: set[str]) -> None:
    assert len({name_of("context", text) for text in texts}) == len(texts)


def test_long_text_keeps_its_beginning() -> None:
    first, second = (name_of("context", "é/" * 200 + end) for end in "ab")

    assert first != second
    assert text_of(first).startswith("é/é/")
    assert text_of(first).endswith("...")


@pytest.mark.parametrize("text", ["datasource0", "a.b-c_d", "東京"])
def test_text_that_is_a_name_stays(text: str) -> None:
    assert name_of("context", text) == text


def test_empty_text_is_no_name() -> None:
    with pytest.raises(NameInvalidError, match="'' can't be the name of a job"):
        name_of("job", "")
