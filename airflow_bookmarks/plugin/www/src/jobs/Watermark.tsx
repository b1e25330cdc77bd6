import { Flex, Stack, Text } from "@chakra-ui/react";
import { Ago } from "../parts/Ago";
import { Hint } from "../parts/Hint";
import { markWords, type Orders, timeOfMark } from "../words/mark";
import { knownWatermarks } from "./watermark";

/** Where a job stands, in one line: the first of its contexts, and how many more there are. */
export function Watermark({ of, orders }: { of: Readonly<Record<string, string | null>>; orders: Orders }) {
  const [first, ...others] = knownWatermarks(of);
  if (first === undefined) return <Text color="fg.muted">–</Text>;
  const [ctx, value] = first;
  return (
    <Flex gap={2} whiteSpace="nowrap">
      <Text color="fg.muted" truncate maxW="8rem" title={ctx}>
        {ctx}
      </Text>
      {timeOfMark(value, orders[ctx]) === undefined ? (
        <Text truncate maxW="10rem" title={value}>
          {value}
        </Text>
      ) : (
        <Ago at={value} mayLieAhead />
      )}
      {others.length > 0 && (
        <Hint label={`+${others.length}`}>
          <Stack gap={1}>
            {[first, ...others].map(([name, each]) => (
              <Text key={name} wordBreak="break-all">
                {name}: {markWords(each, orders[name])}
              </Text>
            ))}
          </Stack>
        </Hint>
      )}
    </Flex>
  );
}
