import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

from awsglue.dynamicframe import DynamicFrame
from pyspark.sql.functions import lit

args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake", "tables"])
sc = SparkContext.getOrCreate()
glueContext = GlueContext(sc)
logger = glueContext.get_logger()
job = Job(glueContext)
job.init(args["JOB_NAME"], args)


def copy_table(table):
    source = glueContext.create_dynamic_frame.from_catalog(
        database="landing", table_name=table, transformation_ctx="data_source_" + table
    )
    df = source.toDF()
    if len(df.columns) == 0:
        logger.info("Aborting copy of data for table %s: nothing new" % table)
        return
    df = df.withColumn("source", lit(table))
    glueContext.write_dynamic_frame.from_options(
        frame=DynamicFrame.fromDF(df, glueContext, "cast_" + table),
        connection_type="s3",
        connection_options={"path": args["lake"] + "/raw_zone/" + table},
        format="parquet",
        transformation_ctx="data_sink_" + table,
    )


failed = []
for table in args["tables"].split(","):
    try:
        copy_table(table)
    except Exception as e:
        failed.append(table)
        logger.error("Failed to copy table %s: %s" % (table, e))
print("failed:", failed)
job.commit()
