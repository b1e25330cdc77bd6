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

pushdown = "import_date >= date_format(date_sub(current_date, 5), 'yyyyMMdd')"
source = glueContext.create_dynamic_frame.from_catalog(
    name_space="imports", table_name="rows", transformation_ctx="source", push_down_predicate=pushdown
)
df = source.toDF()
if df.rdd.isEmpty():
    job.commit()
    sys.exit(0)
df.createOrReplaceTempView("rows")
counted = spark.sql("select import_date, count(*) as n from rows group by import_date")
from awsglue.dynamicframe import DynamicFrame

glueContext.write_dynamic_frame.from_options(
    DynamicFrame.fromDF(counted, glueContext, "counted"), "s3", {"path": args["lake"] + "/counted"}, "parquet"
)
job.commit()
