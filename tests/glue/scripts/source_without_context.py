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

lookup = glueContext.create_dynamic_frame.from_options(
    connection_type="s3",
    connection_options={"paths": [args["lake"] + "/lookup"]},
    format="csv",
    format_options={"withHeader": True},
)
facts = glueContext.create_dynamic_frame_from_options(
    connection_type="s3",
    connection_options={"paths": [args["lake"] + "/facts"], "exclusions": '["**.tmp"]'},
    format="csv",
    format_options={"withHeader": True},
    transformation_ctx="facts",
)
dyf = lookup.union(facts)
glueContext.write_dynamic_frame_from_options(
    frame=dyf,
    connection_type="s3",
    connection_options={"path": args["lake"] + "/all"},
    format="csv",
    transformation_ctx="facts",
)
job.commit()
