import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

from awsglue.dynamicframe import DynamicFrame

args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake", "today"])
glueContext = GlueContext(SparkContext.getOrCreate())
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

target = args["lake"] + "/refined/"
new = glueContext.create_dynamic_frame.from_options(
    "s3", {"paths": [args["lake"] + "/raw"]}, "json", transformation_ctx="new"
)
df = new.toDF()
if len(df.columns) > 0 and df.count() > 0:
    try:
        earlier = spark.read.parquet(target).where("day = '%s'" % args["today"])
        df = earlier.unionByName(df, allowMissingColumns=True)
    except Exception:
        print("no rows of today yet")
    df = df.cache()
    df.count()
    glueContext.purge_s3_path(target + "day=" + args["today"], {"retentionPeriod": 0})
    glueContext.write_dynamic_frame.from_options(
        frame=DynamicFrame.fromDF(df, glueContext, "today"),
        connection_type="s3",
        connection_options={"path": target, "partitionKeys": ["day"]},
        format="parquet",
        transformation_ctx="refined",
    )
job.commit()
