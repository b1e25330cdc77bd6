import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

from datetime import datetime

from awsglue.dynamicframe import DynamicFrame

args = getResolvedOptions(sys.argv, ["JOB_NAME", "JOB_RUN_ID", "lake"])
glueContext = GlueContext(SparkContext.getOrCreate())
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

events = glueContext.create_dynamic_frame.from_options(
    "s3", {"paths": [args["lake"] + "/raw"]}, "json", transformation_ctx="events"
)
number = events.count()
if number:
    glueContext.write_dynamic_frame.from_options(
        events, "s3", {"path": args["lake"] + "/events"}, "json", transformation_ctx="events_sink"
    )
entry = spark.createDataFrame([(args["JOB_RUN_ID"], number, datetime.now())], "run string, number int, at timestamp")
glueContext.write_dynamic_frame.from_options(
    frame=DynamicFrame.fromDF(entry, glueContext, "entry"),
    connection_type="s3",
    connection_options={"path": args["lake"] + "/job_log"},
    format="parquet",
    transformation_ctx="log_sink",
)
job.commit()
