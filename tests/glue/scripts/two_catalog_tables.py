import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

## @params: [JOB_NAME]
args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake"])

sc = SparkContext()
glueContext = GlueContext(sc)
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

datasource0 = glueContext.create_dynamic_frame.from_catalog(
    database="shop_raw", table_name="orders", transformation_ctx="datasource0"
)
applymapping1 = ApplyMapping.apply(
    frame=datasource0,
    mappings=[
        ("id", "long", "order_id", "long"),
        ("price", "double", "price", "double"),
        ("day", "string", "day", "string"),
    ],
    transformation_ctx="applymapping1",
)
resolvechoice2 = ResolveChoice.apply(frame=applymapping1, choice="make_struct", transformation_ctx="resolvechoice2")
dropnullfields3 = DropNullFields.apply(frame=resolvechoice2, transformation_ctx="dropnullfields3")
datasink4 = glueContext.write_dynamic_frame.from_options(
    frame=dropnullfields3,
    connection_type="s3",
    connection_options={"path": args["lake"] + "/clean/orders", "partitionKeys": ["day"]},
    format="parquet",
    transformation_ctx="datasink4",
)

datasource5 = glueContext.create_dynamic_frame.from_catalog(
    database="shop_raw", table_name="customers", transformation_ctx="datasource5"
)
selectfields6 = SelectFields.apply(frame=datasource5, paths=["id", "name"], transformation_ctx="selectfields6")
datasink7 = glueContext.write_dynamic_frame.from_options(
    frame=selectfields6,
    connection_type="s3",
    connection_options={"path": args["lake"] + "/clean/customers"},
    format="json",
    transformation_ctx="datasink7",
)
job.commit()
