import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake"])
glueContext = GlueContext(SparkContext.getOrCreate())
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

from awsglue.dynamicframe import DynamicFrame
from pyspark.sql.functions import col, explode

source = glueContext.create_dynamic_frame.from_options(
    connection_type="s3",
    connection_options={
        "paths": [args["lake"] + "/raw"],
        "recurse": True,
        "groupFiles": "inPartition",
        "groupSize": "1048576",
    },
    format="json",
    format_options={"jsonPath": "$.orders[*]", "multiline": True},
    transformation_ctx="source",
)
df = source.toDF()
if len(df.columns):
    lines = df.select(col("id").alias("order_id"), explode("lines").alias("line")).select("order_id", "line.*")
    glueContext.write_dynamic_frame.from_options(
        frame=DynamicFrame.fromDF(lines, glueContext, "lines"),
        connection_type="s3",
        connection_options={"path": args["lake"] + "/lines"},
        format="csv",
        format_options={"separator": ";", "quoteChar": -1},
    )
job.commit()
