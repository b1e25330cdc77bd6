import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake"])
glueContext = GlueContext(SparkContext.getOrCreate())

for step in ("one", "two"):
    job = Job(glueContext)
    job.init(args["JOB_NAME"] + " step " + step, args)
    frame = glueContext.create_dynamic_frame.from_options(
        "s3", {"paths": [args["lake"] + "/" + step]}, "json", transformation_ctx="frame"
    )
    glueContext.write_dynamic_frame.from_options(frame, "s3", {"path": args["lake"] + "/out/" + step}, "json")
    job.commit()
