import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake"])
glueContext = GlueContext(SparkContext.getOrCreate())
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

source = glueContext.getSource("file", paths=[args["lake"] + "/raw"], transformation_ctx="source")
source.setFormat("csv", withHeader=True, separator="|")
frame = source.getFrame()

sink = glueContext.getSink(
    connection_type="s3",
    path=args["lake"] + "/events",
    partitionKeys=["kind"],
    compression="gzip",
    transformation_ctx="sink",
)
sink.setFormat("glueparquet")
sink.writeFrame(frame)
job.commit()
