import { Box, Link, List, Text } from "@chakra-ui/react";
import { Link as RouterLink } from "react-router-dom";
import type { BackfillPreview } from "../api/model";
import { dagPage } from "../job/task";

/** The DAGs to trigger after a backfill, in order, each with a link; what no DAG runs is named. Nothing where none is. */
export function DagRuns({ of }: { of: BackfillPreview["dag_runs"] }) {
  if (of.length === 0) return null;
  return (
    <Box data-testid="dag-runs">
      <Text>To run these jobs now, trigger, in this order:</Text>
      <List.Root as="ol" ps={5}>
        {of.map(({ dag_id, jobs, is_here }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a DAG may come twice, and the list does not change
          <List.Item key={index} wordBreak="break-word">
            {dag_id === null ? (
              "run manually"
            ) : !is_here ? (
              `DAG ${dag_id}, which this Airflow doesn't have`
            ) : (
              <Link asChild colorPalette="blue" wordBreak="break-all">
                <RouterLink to={dagPage(dag_id)}>DAG {dag_id}</RouterLink>
              </Link>
            )}
            : {jobs.join(", ")}
          </List.Item>
        ))}
      </List.Root>
    </Box>
  );
}
