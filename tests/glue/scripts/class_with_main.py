"""A job as a class, in the way of AWS's samples."""

import sys

from awsglue.context import *
from awsglue.dynamicframe import DynamicFrame
from awsglue.gluetypes import *
from awsglue.job import *
from awsglue.transforms import *
from awsglue.utils import *
from pyspark.context import SparkContext


class Sample:
    def __init__(self):
        params = []
        if "--JOB_NAME" in sys.argv:
            params.append("JOB_NAME")
        args = getResolvedOptions(sys.argv, params + ["lake"])
        self.lake = args["lake"]
        self.context = GlueContext(SparkContext.getOrCreate())
        self.job = Job(self.context)
        self.job.init(args.get("JOB_NAME", "test"), args)

    def run(self):
        dyf = self.read(self.lake + "/raw")
        dyf.printSchema()
        dyf.show(2)
        flat = UnnestFrame.apply(frame=dyf)
        renamed = RenameField.apply(flat, "`who.name`", "name")
        dropped = DropFields.apply(renamed, ["`who.age`"])
        self.context.write_dynamic_frame.from_options(
            frame=dropped.repartition(1),
            connection_type="file",
            connection_options={"path": self.lake + "/flat"},
            format="orc",
        )
        self.job.commit()

    def read(self, path):
        return self.context.create_dynamic_frame.from_options(
            connection_type="s3",
            connection_options={"paths": [path], "recurse": True},
            format="json",
            transformation_ctx="read",
        )


if __name__ == "__main__":
    Sample().run()
