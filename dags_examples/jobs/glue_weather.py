"""Turn weather reports into Parquet. A script for AWS Glue as it was there: nothing of it was changed."""

import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import ApplyMapping
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "source", "target"])
glueContext = GlueContext(SparkContext.getOrCreate())
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

reports = glueContext.create_dynamic_frame.from_options(
    connection_type="s3",
    connection_options={"paths": [args["source"]], "recurse": True},
    format="csv",
    format_options={"withHeader": True},
    transformation_ctx="reports",
)
weather = ApplyMapping.apply(
    frame=reports,
    mappings=[
        ("origin", "string", "airport", "string"),
        ("month", "string", "month", "int"),
        ("day", "string", "day", "int"),
        ("hour", "string", "hour", "int"),
        ("temp", "string", "temperature", "double"),
        ("humid", "string", "humidity", "double"),
    ],
    transformation_ctx="weather",
)
glueContext.write_dynamic_frame.from_options(
    frame=weather,
    connection_type="s3",
    connection_options={"path": args["target"], "partitionKeys": ["month", "day"]},
    format="glueparquet",
    transformation_ctx="target",
)
job.commit()
