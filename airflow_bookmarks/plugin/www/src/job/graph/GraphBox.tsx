import { Box, Text } from "@chakra-ui/react";
import type { GraphNode } from "../../api/model";
import { JobLink } from "../../parts/JobLink";
import { boxName, nodeRemark } from "./layout";

/** A job (a link to it), or a source that is none (rounded, with a broken border). */
export function GraphBox({ node, isOwn }: { node: GraphNode; isOwn: boolean }) {
  const isJob = node.kind === "job";
  const remark = nodeRemark(node);
  return (
    <Box
      height="full"
      px={3}
      py={2}
      bg={isOwn ? "bg.emphasized" : "bg"}
      borderWidth={isOwn ? "2px" : "1px"}
      borderStyle={isJob ? "solid" : "dashed"}
      borderColor={isOwn ? "fg" : "border.emphasized"}
      borderRadius={isJob ? "md" : "full"}
      display="flex"
      flexDirection="column"
      justifyContent="center"
      title={remark ? `${node.name} (${remark})` : node.name}
      aria-current={isOwn ? "true" : undefined}
    >
      <Text
        truncate
        fontSize="sm"
        // A source that is still too wide loses its beginning instead of its end.
        {...(isJob ? {} : { dir: "rtl", textAlign: "left" })}
        fontWeight={isOwn ? "semibold" : "normal"}
        css={{ "& a": { display: "block", wordBreak: "normal", overflow: "hidden", textOverflow: "ellipsis" } }}
      >
        {isJob && node.is_known && !isOwn ? <JobLink job={node.name} /> : <bdi dir="ltr">{boxName(node)}</bdi>}
      </Text>
      <Text truncate fontSize="xs" color="fg.muted">
        {remark ?? healthWords(node)}
      </Text>
    </Box>
  );
}

function healthWords(node: GraphNode): string {
  if (node.kind !== "job") return "source";
  if (node.run_number === null) return "job";
  return `run ${node.run_number}, published ${node.published ?? 0}`;
}
