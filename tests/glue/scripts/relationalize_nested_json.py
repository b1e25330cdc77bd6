import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "TempDir", "lake"])
glueContext = GlueContext(SparkContext())
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

persons = glueContext.create_dynamic_frame.from_options(
    "s3", {"paths": [args["lake"] + "/raw"]}, "json", transformation_ctx="persons"
)
dfc = Relationalize.apply(
    frame=persons,
    staging_path=args["TempDir"],
    name="root",
    transformation_ctx="dfc",
)
for name in dfc.keys():
    frame = dfc.select(name)
    if frame.count() == 0:
        continue
    print("Writing to table: ", name)
    glueContext.write_dynamic_frame.from_options(
        frame=frame,
        connection_type="s3",
        connection_options={"path": args["lake"] + "/flat/" + name},
        format="parquet",
        transformation_ctx="sink_" + name,
    )
job.commit()
