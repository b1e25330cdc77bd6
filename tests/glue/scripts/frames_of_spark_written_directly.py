import sys
from datetime import date

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext
from pyspark.sql import functions as F

sc = SparkContext()
glueContext = GlueContext(sc)
spark = glueContext.spark_session
args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake", "WORKFLOW_NAME"])
job = Job(glueContext)
job.init(args["JOB_NAME"], args)
log = glueContext.get_logger()

dyf = glueContext.create_dynamic_frame.from_options(
    connection_type="s3",
    connection_options={"paths": [f"{args['lake']}/in"]},
    format="csv",
    format_options={"withHeader": True, "separator": "\t"},
    transformation_ctx="dyf",
)
count = dyf.count()
log.info(f"{args['WORKFLOW_NAME']}: {count} rows")
if count > 0:
    df = (
        dyf.toDF()
        .withColumn("amount", F.col("amount").cast("double"))
        .groupBy("shop")
        .agg(F.sum("amount").alias("sum"))
    )
    df.write.mode("append").parquet(f"{args['lake']}/sums")
job.commit()
