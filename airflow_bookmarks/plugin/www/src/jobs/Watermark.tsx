import { Flex, Stack, Text } from "@chakra-ui/react";
import { Ago } from "../parts/Ago";
import { Hint } from "../parts/Hint";
import { timeOf } from "../words/time";
import { knownWatermarks, watermarkInFull } from "./watermark";

/** Where a job stands, in one line: the first of its contexts, and how many more there are. */
export function Watermark({ of }: { of: Readonly<Record<string, string | null>> }) {
  const [first, ...others] = knownWatermarks(of);
  if (first === undefined) return <Text color="fg.muted">–</Text>;
  const [ctx, value] = first;
  return (
    <Flex gap={2} whiteSpace="nowrap">
      <Text color="fg.muted" truncate maxW="8rem" title={ctx}>
        {ctx}
      </Text>
      {timeOf(value) === undefined ? (
        <Text truncate maxW="10rem" title={value}>
          {value}
        </Text>
      ) : (
        <Ago at={value} />
      )}
      {others.length > 0 && (
        <Hint label={`+${others.length}`}>
          <Stack gap={1}>
            {[first, ...others].map(([name, each]) => (
              <Text key={name} wordBreak="break-all">
                {name}: {watermarkInFull(each)}
              </Text>
            ))}
          </Stack>
        </Hint>
      )}
    </Flex>
  );
}
