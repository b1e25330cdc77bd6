import { Tabs } from "@chakra-ui/react";
import { useEffect, useRef } from "react";
import { useSearchParams } from "react-router-dom";
import type { Job, RunRow } from "../api/model";
import { Boundary } from "../parts/Boundary";
import { TABS, type Tab, tabOf, withTab } from "./address";
import { Charts } from "./charts/Charts";
import { Events } from "./events/Events";
import { JobGraph } from "./graph/JobGraph";
import { Overview } from "./overview/Overview";
import { Runs } from "./runs/Runs";

interface JobTabsProps {
  job: Job;
  onPicked: (run: RunRow) => void;
}

const TITLES: Record<Tab, string> = {
  overview: "Overview",
  runs: "Runs",
  charts: "Charts",
  events: "Events",
  graph: "Graph",
};

/** Scroll a list of tabs sideways to one of them; the page stays where it is, with the name of the job at its top. */
function showInList(tab: HTMLElement) {
  const list = tab.parentElement;
  if (list === null) return;
  const [own, all] = [tab.getBoundingClientRect(), list.getBoundingClientRect()];
  if (own.left < all.left) list.scrollLeft += own.left - all.left;
  else if (own.right > all.right) list.scrollLeft += own.right - all.right;
}

/** The parts of a job's page; the address says which one is open. */
export function JobTabs({ job, onPicked }: JobTabsProps) {
  const [search, setSearch] = useSearchParams();
  const tab = tabOf(search);
  const open = useRef<HTMLButtonElement>(null);
  // On a narrow screen the tab that the address names may lie outside of the list.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab is another button
  useEffect(() => {
    if (open.current !== null) showInList(open.current);
  }, [tab]);
  return (
    <Tabs.Root
      value={tab}
      onValueChange={(change) => setSearch(withTab(search, change.value))}
      lazyMount
      unmountOnExit
      minW={0}
    >
      <Tabs.List overflowX="auto" overflowY="hidden">
        {TABS.map((each) => (
          <Tabs.Trigger key={each} value={each} flexShrink={0} ref={each === tab ? open : undefined}>
            {TITLES[each]}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      <Tabs.Content value="overview">
        <Boundary what="This tab">
          <Overview job={job} />
        </Boundary>
      </Tabs.Content>
      <Tabs.Content value="runs">
        <Boundary what="This tab">
          <Runs job={job} onPicked={onPicked} />
        </Boundary>
      </Tabs.Content>
      <Tabs.Content value="charts">
        <Boundary what="This tab">
          <Charts job={job.job} />
        </Boundary>
      </Tabs.Content>
      <Tabs.Content value="events">
        <Boundary what="This tab">
          <Events job={job.job} />
        </Boundary>
      </Tabs.Content>
      <Tabs.Content value="graph">
        <Boundary what="This tab">
          <JobGraph job={job.job} />
        </Boundary>
      </Tabs.Content>
    </Tabs.Root>
  );
}
