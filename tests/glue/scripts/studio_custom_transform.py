import sys

from awsglue import DynamicFrame
from awsglue.context import GlueContext
from awsglue.dynamicframe import DynamicFrameCollection
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext


# Script generated for node Custom Transform
def MyTransform(glueContext, dfc) -> DynamicFrameCollection:
    from pyspark.sql.functions import upper

    df = dfc.select(list(dfc.keys())[0]).toDF()
    if df.columns:
        df = df.withColumn("name", upper("name"))
    dyf = DynamicFrame.fromDF(df, glueContext, "upper")
    return DynamicFrameCollection({"CustomTransform0": dyf}, glueContext)


def sparkSqlQuery(glueContext, query, mapping, transformation_ctx) -> DynamicFrame:
    for alias, frame in mapping.items():
        frame.toDF().createOrReplaceTempView(alias)
    result = spark.sql(query)
    return DynamicFrame.fromDF(result, glueContext, transformation_ctx)


args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake"])
sc = SparkContext()
glueContext = GlueContext(sc)
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

# Script generated for node Data Catalog table
AWSGlueDataCatalog_node1730078287682 = glueContext.create_dynamic_frame.from_catalog(
    database="studio", table_name="people", transformation_ctx="AWSGlueDataCatalog_node1730078287682"
)

# Script generated for node Custom Transform
CustomTransform_node1 = MyTransform(
    glueContext,
    DynamicFrameCollection({"AWSGlueDataCatalog_node1730078287682": AWSGlueDataCatalog_node1730078287682}, glueContext),
)

# Script generated for node Select From Collection
SelectFromCollection_node2 = SelectFromCollection.apply(
    dfc=CustomTransform_node1,
    key=list(CustomTransform_node1.keys())[0],
    transformation_ctx="SelectFromCollection_node2",
)

if SelectFromCollection_node2.count() > 0:
    # Script generated for node SQL Query
    SqlQuery0 = "select id, name, length(name) as n from myDataSource where id > 0"
    SQLQuery_node3 = sparkSqlQuery(
        glueContext,
        query=SqlQuery0,
        mapping={"myDataSource": SelectFromCollection_node2},
        transformation_ctx="SQLQuery_node3",
    )
    # Script generated for node Amazon S3
    AmazonS3_node4 = glueContext.getSink(
        path=args["lake"] + "/people_out",
        connection_type="s3",
        updateBehavior="UPDATE_IN_DATABASE",
        partitionKeys=[],
        enableUpdateCatalog=True,
        transformation_ctx="AmazonS3_node4",
    )
    AmazonS3_node4.setCatalogInfo(catalogDatabase="studio", catalogTableName="people_out")
    AmazonS3_node4.setFormat("glueparquet", compression="snappy")
    AmazonS3_node4.writeFrame(SQLQuery_node3)
job.commit()
