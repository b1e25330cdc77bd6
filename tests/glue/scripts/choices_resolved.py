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

source = glueContext.create_dynamic_frame.from_options(
    "s3", {"paths": [args["lake"] + "/raw"]}, "json", transformation_ctx="source"
)
source.printSchema()
resolved = source.resolveChoice(specs=[("zip", "cast:string"), ("price", "make_cols")])
resolved = ResolveChoice.apply(frame=resolved, choice="cast:double") if False else resolved
out = DropFields.apply(frame=resolved, paths=["extra"])
glueContext.write_dynamic_frame.from_options(
    frame=out, connection_type="s3", connection_options={"path": args["lake"] + "/out"}, format="json"
)
job.commit()
