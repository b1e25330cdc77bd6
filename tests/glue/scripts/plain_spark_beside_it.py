import sys

from awsglue.context import GlueContext
from awsglue.dynamicframe import DynamicFrame
from awsglue.job import Job
from awsglue.utils import getResolvedOptions
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

spark = SparkSession.builder.appName("latest").getOrCreate()
glue_context = GlueContext(spark.sparkContext)
args = getResolvedOptions(sys.argv)
job = Job(glue_context)
job.init(args["JOB_NAME"], args)
glue_context.setConf("spark.sql.shuffle.partitions", "2")


def latest(df):
    w = Window.partitionBy("id").orderBy(F.col("version").desc())
    return df.withColumn("rank", F.row_number().over(w)).where("rank = 1").drop("rank")


source = glue_context.create_dynamic_frame.from_options(
    connection_type="s3",
    format="csv",
    format_options={"withHeader": True},
    connection_options={"paths": [args["lake"] + "/raw"]},
    transformation_ctx="source",
)
if source.toDF().head(1):
    rows = latest(source.toDF()).withColumn("loaded_by", F.lit(args["JOB_NAME"]))
    glue_context.write_data_frame.from_options(
        frame=rows, connection_type="s3", connection_options={"path": args["lake"] + "/latest"}, format="parquet"
    )
job.commit()
