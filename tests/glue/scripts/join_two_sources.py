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

persons = glueContext.create_dynamic_frame.from_options(
    connection_type="s3",
    connection_options={"paths": [args["lake"] + "/persons"]},
    format="json",
    transformation_ctx="persons",
)
memberships = glueContext.create_dynamic_frame.from_options(
    connection_type="s3", connection_options={"paths": [args["lake"] + "/memberships"]}, format="json"
)
joined = Join.apply(persons.rename_field("id", "person"), memberships, "person", "person_id").drop_fields(["person_id"])
glueContext.write_dynamic_frame.from_options(
    frame=joined, connection_type="s3", connection_options={"path": args["lake"] + "/history"}, format="parquet"
)
job.commit()
