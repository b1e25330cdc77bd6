import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake", "url", "user", "password"])
glueContext = GlueContext(SparkContext.getOrCreate())
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

orders = glueContext.create_dynamic_frame.from_options(
    connection_type="postgresql",
    connection_options={
        "url": args["url"],
        "user": args["user"],
        "password": args["password"],
        "dbtable": "orders",
        "jobBookmarkKeys": ["id"],
        "jobBookmarkKeysSortOrder": "asc",
    },
    transformation_ctx="orders",
)
glueContext.write_dynamic_frame.from_options(
    frame=orders, connection_type="s3", connection_options={"path": args["lake"] + "/orders"}, format="parquet"
)
job.commit()
