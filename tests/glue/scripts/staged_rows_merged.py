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

current = glueContext.create_dynamic_frame.from_options("s3", {"paths": [args["lake"] + "/base"]}, "json")
changes = glueContext.create_dynamic_frame.from_options(
    "s3", {"paths": [args["lake"] + "/changes"]}, "json", transformation_ctx="changes"
)
merged = current.mergeDynamicFrame(changes, ["id"], transformation_ctx="merged")
glueContext.purge_s3_path(args["lake"] + "/merged", {"retentionPeriod": 0})
glueContext.write_dynamic_frame.from_options(
    frame=merged, connection_type="s3", connection_options={"path": args["lake"] + "/merged"}, format="parquet"
)
job.commit()
