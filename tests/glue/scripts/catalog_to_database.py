import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["TempDir", "JOB_NAME"])
sc = SparkContext()
glueContext = GlueContext(sc)
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

datasource0 = glueContext.create_dynamic_frame.from_catalog(
    database="to_database", table_name="orders", transformation_ctx="datasource0"
)
applymapping1 = ApplyMapping.apply(
    frame=datasource0,
    mappings=[("id", "bigint", "id", "int"), ("name", "string", "name", "string")],
    transformation_ctx="applymapping1",
)
conf = glueContext.extract_jdbc_conf("dw")
print("to", conf["vendor"], "as", conf["user"])
datasink2 = glueContext.write_dynamic_frame.from_jdbc_conf(
    frame=applymapping1,
    catalog_connection="dw",
    connection_options={"dbtable": "orders", "database": conf["fullUrl"].rsplit("/", 1)[1]},
    redshift_tmp_dir=args["TempDir"],
    transformation_ctx="datasink2",
)
job.commit()
