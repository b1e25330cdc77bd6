import { createContext, useContext } from "react";
import type { Orders } from "../words/mark";

/** The orders of the job that the page shows, for whatever shows a watermark of it. */
export const JobOrders = createContext<Orders>({});

/** Return by which order the watermarks of each context of the job compare; it has those of no other contexts. */
export function useOrders(): Orders {
  return useContext(JobOrders);
}
