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

df0 = glueContext.create_dynamic_frame.from_options(
    "s3", {"paths": [args["lake"] + "/raw"]}, "json", transformation_ctx="df0"
)
split = SplitRows.apply(frame=df0, comparison_dict={"amount": {">": 10, "<": 100}}, name1="mid", name2="rest")
for key in split.keys():
    part = SelectFromCollection.apply(dfc=split, key=key)
    glueContext.write_dynamic_frame.from_options(
        frame=part,
        connection_type="s3",
        connection_options={"path": args["lake"] + "/" + key},
        format="json",
        transformation_ctx="sink",
    )
job.commit()
