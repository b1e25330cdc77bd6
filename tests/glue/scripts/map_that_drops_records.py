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


def clean(rec):
    if rec["status"] == "cancelled":
        return None
    rec["total"] = rec["quantity"] * rec["price"]
    rec["address"] = {"city": rec["city"], "country": "GB"}
    del rec["city"]
    return rec


orders = glueContext.create_dynamic_frame.from_options(
    connection_type="s3",
    connection_options={"paths": [f"{args['lake']}/raw/"]},
    format="json",
    transformation_ctx="orders",
)
mapped = Map.apply(frame=orders, f=clean, transformation_ctx="mapped")
large = Filter.apply(frame=mapped, f=lambda x: x["total"] > 5, transformation_ctx="large")
print("kept", large.count(), "errors", large.errorsCount())
glueContext.write_dynamic_frame.from_options(
    frame=large,
    connection_type="s3",
    connection_options={"path": f"{args['lake']}/large"},
    format="json",
)
job.commit()
