import { Box, Button, Flex, Heading, Text } from "@chakra-ui/react";
import { useId, useState } from "react";
import { useWidth } from "../../parts/useWidth";
import { ChartPicture, FOOT, LEFT, PICTURE, RIGHT } from "./ChartPicture";
import { ChartTable } from "./ChartTable";
import { draw, nearest, pointAfter } from "./draw";
import type { Measure } from "./measures";
import type { ChangeMark, ChartPoint } from "./points";
import { readout, unusualInWords } from "./told";

interface ChartProps {
  measure: Measure;
  points: readonly ChartPoint[];
  changes: readonly ChangeMark[];
}

/** One figure of the runs: a line, a readout of the run that one is at, and the same as a table. */
export function Chart({ measure, points, changes }: ChartProps) {
  const [asTable, setAsTable] = useState(false);
  const id = useId();
  const isKnown = points.some((point) => point.value !== null);
  return (
    <Box as="figure" aria-labelledby={id} borderWidth="1px" borderRadius="md" p={3} m={0} minW={0}>
      <Flex justifyContent="space-between" gap={2} alignItems="flex-start">
        <Box>
          <Heading as="h3" id={id} size="sm">
            {measure.title}
          </Heading>
          <Text fontSize="xs" color="fg.muted">
            {measure.hint}
          </Text>
        </Box>
        {isKnown && (
          <Button size="xs" variant="ghost" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            {asTable ? "As a chart" : "As a table"}
          </Button>
        )}
      </Flex>
      {!isKnown && (
        <Text fontSize="sm" py={8} color="fg.muted">
          {measure.isByTime ? "Unknown, because the watermark may not be a time." : "No run recorded these counts."}
        </Text>
      )}
      {isKnown && asTable && <ChartTable measure={measure} points={points} />}
      {isKnown && !asTable && <Plot measure={measure} points={points} changes={changes} />}
      {isKnown && (
        <Text fontSize="xs" mt={2} data-testid={`unusual-${measure.id}`}>
          {unusualInWords(points, measure)}
        </Text>
      )}
    </Box>
  );
}

function Plot({ measure, points, changes }: ChartProps) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [picked, setPicked] = useState<number>();
  const last = points.length - 1;
  const at = Math.min(picked ?? last, last);
  const frame = { width: Math.max(0, width - LEFT - RIGHT), height: PICTURE - FOOT };
  const drawing = draw(points, frame, measure, changes);
  const said = readout(points[at], measure);
  return (
    <Box ref={ref} position="relative" mt={2}>
      <Text fontSize="xs" mb={1} aria-hidden data-testid={`readout-${measure.id}`}>
        {said}
      </Text>
      <Box position="relative">
        <ChartPicture
          drawing={drawing}
          frame={frame}
          at={at}
          points={points}
          label={`${measure.title} over ${points.length} runs`}
          say={measure.tick ?? measure.say}
        />
        <Box
          role="slider"
          tabIndex={0}
          position="absolute"
          inset={0}
          focusRing="outside"
          borderRadius="sm"
          aria-label={`Run shown for ${measure.title}`}
          aria-valuemin={1}
          aria-valuemax={points.length}
          aria-valuenow={at + 1}
          aria-valuetext={said}
          onKeyDown={(event) => {
            const next = pointAfter(event.key, at, points.length);
            if (next === undefined) return;
            event.preventDefault();
            setPicked(next);
          }}
          onPointerMove={(event) => {
            const left = event.currentTarget.getBoundingClientRect().left + LEFT;
            setPicked(nearest(drawing.dots, event.clientX - left));
          }}
        />
      </Box>
    </Box>
  );
}
