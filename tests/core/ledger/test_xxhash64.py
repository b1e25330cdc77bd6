"""Promises of `xxhash64`: it gives what Spark's function of this name gives."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.ledger.xxhash64 import xxhash64

# From Spark 4.1.3: SELECT xxhash64(...).
OF_SPARK = {
    "": -7444071767201028348,
    "Spark": -4294468057691064905,
}


@pytest.mark.parametrize("text", OF_SPARK)
def test_hash_is_that_of_spark(text: str) -> None:
    assert xxhash64([text]).tolist() == [OF_SPARK[text]]


def test_hash_of_a_text_does_not_depend_on_the_others() -> None:
    texts = ["x" * length for length in range(100)] + ["é" * length for length in range(50)]
    assert xxhash64(texts).tolist() == [xxhash64([text]).tolist()[0] for text in texts]
    assert len(set(xxhash64(texts).tolist())) == len(set(texts))


def test_no_texts_have_no_hashes() -> None:
    assert len(xxhash64([])) == 0
