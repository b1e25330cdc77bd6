import { ApiError, type Failure } from "./client";

/** What a failure is, and what to do about it besides what its message says. */
export interface Diagnosis {
  title: string;
  advice?: string;
}

const BY_FAILURE: Record<Exclude<Failure, "refused">, string> = {
  gateway: "The server in front of Airflow can't reach it",
  unreachable: "Airflow can't be reached",
  offline: "This browser is offline",
  timeout: "Airflow does not answer in time",
  malformed: "The answer can't be read",
  unexpected: "The answer is not what was expected",
};

// By the name that the server gives to an error.
const BY_NAME: Readonly<Record<string, Diagnosis>> = {
  NotInTimeError: {
    title: "The state store does not answer in time",
    advice:
      "The page retries automatically. If it persists, ask your Airflow administrator to check the load on the store.",
  },
  StateCorruptError: {
    title: "The state is damaged",
    advice: "Ask your Airflow administrator to run airflow-bookmarks doctor, which says what can be repaired.",
  },
  StoreAccessError: {
    title: "The state store can't be used",
    advice:
      "Ask your Airflow administrator to check the address and credentials of the connection in [bookmarks] conn_id.",
  },
  StoreThrottledError: {
    title: "The state store throttles requests",
    advice: "Wait a minute. If it persists, ask whoever maintains the table to raise its capacity or limits.",
  },
  StoreUnavailableError: {
    title: "The state store does not answer",
    advice:
      "The page retries automatically. If it persists, ask your Airflow administrator to check the network path to the store.",
  },
  TableLayoutError: {
    title: "The state store holds something else",
    advice: "Ask your Airflow administrator to check the address in the connection of [bookmarks] conn_id.",
  },
  TableMissingError: {
    title: "The state store is missing",
    advice:
      "Ask your Airflow administrator to check the address in the connection of [bookmarks] conn_id; create a new store with airflow-bookmarks init, or restore a lost one from a backup.",
  },
};

const BY_STATUS: Readonly<Record<number, string>> = {
  401: "You are logged out",
  403: "You don't have permission to see this",
  404: "There is no such job",
  502: "The source can't be read",
  503: "The state store does not answer",
};

/** Say what an error is: of the store and of the way there each has its own words. */
export function diagnosisOf(error: Error): Diagnosis {
  if (!(error instanceof ApiError)) return { title: "Something went wrong" };
  if (error.failure !== "refused") return { title: BY_FAILURE[error.failure] };
  const named = error.refusal && Object.hasOwn(BY_NAME, error.refusal.error) && BY_NAME[error.refusal.error];
  return named || { title: BY_STATUS[error.status] ?? "Something went wrong" };
}
