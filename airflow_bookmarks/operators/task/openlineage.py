"""Report the input and output datasets of a finished task to OpenLineage, with the window that was read.

Imported only when Airflow's OpenLineage provider asks for it. Dataset names follow the OpenLineage naming spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import attr
from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    InputDatasetFacet,
    input_statistics_input_dataset,
    output_statistics_output_dataset,
)

if TYPE_CHECKING:
    from airflow_bookmarks.lifecycle.inspect.lineage import Lineage, ReadDataset, Written

WINDOW_FACET = "bookmarks_window"
_S3 = ("s3", "s3a", "s3n")


@attr.define
class BookmarkWindowFacet(InputDatasetFacet):
    """Which part of a dataset one run has read: the facet `bookmarks_window` of an input.

    Watermarks and run numbers as in XCom; `after` and `until` are run numbers of `upstream`.
    """

    job: str
    runNumber: str
    context: str
    watermarkFrom: str | None = None
    watermarkTo: str | None = None
    upstream: str | None = None
    after: str | None = None
    until: str | None = None


def operator_lineage(of: Lineage | None) -> OperatorLineage[Any, Any] | None:
    """Return the lineage of one run as OpenLineage has it."""
    if of is None:
        return None
    inputs = [_input(of, read, location) for read in of.reads for location in read.locations]
    return OperatorLineage(inputs=inputs, outputs=[_output(written) for written in of.writes])


def _input(of: Lineage, read: ReadDataset, location: str) -> InputDataset:
    window = BookmarkWindowFacet(
        job=of.job,
        runNumber=str(of.run_number),
        context=read.ctx,
        watermarkFrom=read.watermark_from,
        watermarkTo=read.watermark_to,
        upstream=read.upstream,
        after=None if read.after is None else str(read.after),
        until=None if read.until is None else str(read.until),
    )
    facets: dict[str, InputDatasetFacet] = {WINDOW_FACET: window}
    if len(read.locations) == 1:  # the rows of several inputs were not counted separately
        facets["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=read.rows, size=read.bytes, fileCount=read.files
        )
    return InputDataset(*dataset_name(location), inputFacets=facets)


def _output(written: Written) -> OutputDataset:
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=written.rows, size=written.bytes, fileCount=written.files
    )
    return OutputDataset(*dataset_name(written.location), outputFacets={"outputStatistics": statistics})


def dataset_name(location: str) -> tuple[str, str]:
    """Return namespace and name of a dataset at a path or URI.

    Example:
        >>> dataset_name("s3a://lake/flights"), dataset_name("/data/flights")
        (('s3://lake', 'flights'), ('file', '/data/flights'))
    """
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return "file", parts.path if parts.scheme else location
    scheme = "s3" if parts.scheme in _S3 else parts.scheme
    return f"{scheme}://{parts.netloc}", parts.path.strip("/")
