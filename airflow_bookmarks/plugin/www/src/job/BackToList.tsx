import { Box, Link } from "@chakra-ui/react";
import { Link as RouterLink, useSearchParams } from "react-router-dom";
import { backToList, nameOfList } from "./address";

/** The way back to the list, as it was left; none where a tab shows its one job, and there is no list. */
export function BackToList() {
  const [search] = useSearchParams();
  if (!search.has("job")) return null;
  return (
    <Box as="nav" aria-label="Back">
      <Link asChild color="fg.muted" fontSize="sm">
        <RouterLink to={{ search: backToList(search) }}>← {nameOfList(search)}</RouterLink>
      </Link>
    </Box>
  );
}
