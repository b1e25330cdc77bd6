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

source = glueContext.create_dynamic_frame.from_catalog(
    database="sales",
    table_name="raw_sales",
    transformation_ctx="source",
    additional_options={"useS3ListImplementation": True},
)
mapped = ApplyMapping.apply(
    frame=source,
    mappings=[
        ("ID", "int", "id", "int"),
        ("amount", "string", "amount", "decimal(10,2)"),
        ("region", "string", "region", "string"),
    ],
)
glueContext.write_dynamic_frame.from_catalog(
    frame=mapped,
    database="sales",
    table_name="clean_sales",
    additional_options={"enableUpdateCatalog": True, "partitionKeys": ["region"]},
    transformation_ctx="sink",
)
job.commit()
