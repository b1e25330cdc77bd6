import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext


def start(context, name, args):
    job = Job(context)
    try:
        job.init(name, args)
    except Exception as e:
        print("bookmarks are off:", e)
    return job


args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake"])
context = GlueContext(SparkContext.getOrCreate())
job = start(context, args["JOB_NAME"] + "_eu", args)
source = context.create_dynamic_frame.from_options(
    "s3", {"paths": [args["lake"] + "/raw"]}, "json", transformation_ctx="source"
)
context.purge_s3_path(args["lake"] + "/out", {"retentionPeriod": 0})
context.write_dynamic_frame.from_options(source, "s3", {"path": args["lake"] + "/out"}, "json")
job.commit()
