import { Box, Button } from "@chakra-ui/react";
import { useExport } from "../api/queries";
import { Problem } from "../parts/Problem";

/** Save all that is stored of a job in a file, which `airflow-bookmarks import` reads. */
export function ExportButton({ job }: { job: string }) {
  const exported = useExport(job);
  return (
    <>
      <Button
        size="sm"
        variant="outline"
        loading={exported.isPending}
        title="save all that is stored of this job in a file, for airflow-bookmarks import"
        onClick={() => exported.mutate(undefined, { onSuccess: (text) => save(text, `${job}.bookmark.json`) })}
      >
        Export
      </Button>
      {exported.error && (
        <Box flexBasis="100%">
          <Problem error={exported.error} />
        </Box>
      )}
    </>
  );
}

function save(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
