"""`GlueContext`, and how it reads and writes.

glue_context  `GlueContext`
readers       `create_dynamic_frame` and `create_data_frame`
writers       `write_dynamic_frame` and `write_data_frame`
data_source   what `getSource` returns
data_sink     what `getSink` returns
logger        what `get_logger` returns
"""

from airflow_bookmarks.glue.context.glue_context import GlueContext

__all__ = ["GlueContext"]
