import sys
from datetime import datetime

from awsglue.context import GlueContext
from awsglue.dynamicframe import DynamicFrame
from awsglue.job import Job
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext
from pyspark.sql import functions as F
from scripts.helpers.watermarks import Watermarks

args = getResolvedOptions(sys.argv, ["JOB_NAME", "JOB_RUN_ID", "lake"])
glueContext = GlueContext(SparkContext.getOrCreate())
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

watermarks = Watermarks("glue-watermarks")
last = watermarks.get_watermark_values(args["JOB_NAME"]) or {}
source = glueContext.create_dynamic_frame.from_options("s3", {"paths": [args["lake"] + "/raw"]}, "json")
df = source.toDF().withColumn("modified", F.to_timestamp("modified"))
if last:
    df = df.where(F.col("modified") > F.lit(last["modified"]))
newest = df.agg(F.max("modified")).collect()[0][0]
if newest is not None:
    glueContext.write_dynamic_frame.from_options(
        DynamicFrame.fromDF(df, glueContext, "new"), "s3", {"path": args["lake"] + "/out"}, "parquet"
    )
    item = Watermarks.create_watermark_item(args["JOB_NAME"], args["JOB_RUN_ID"], modified=newest)
    watermarks.add_watermark(item)
job.commit()
