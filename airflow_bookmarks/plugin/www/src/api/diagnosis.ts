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
    advice: "The page tries again by itself. If it lasts, whoever runs Airflow should look at the load of the store.",
  },
  StateCorruptError: {
    title: "The state is damaged",
    advice: "Whoever runs Airflow should run airflow-bookmarks doctor, which says what can be mended.",
  },
  StoreAccessError: {
    title: "The state store can't be used",
    advice: "Whoever runs Airflow should check the address and credentials of the connection in [bookmarks] conn_id.",
  },
  StoreThrottledError: {
    title: "The state store throttles requests",
    advice: "Wait a minute. If it lasts, whoever runs the table should raise its capacity, or its limits.",
  },
  StoreUnavailableError: {
    title: "The state store does not answer",
    advice: "The page tries again by itself. If it lasts, whoever runs Airflow should check the way to the store.",
  },
  TableLayoutError: {
    title: "The state store holds something else",
    advice: "Whoever runs Airflow should check the address in the connection of [bookmarks] conn_id.",
  },
  TableMissingError: {
    title: "The state store is missing",
    advice:
      "Whoever runs Airflow should check the address in the connection of [bookmarks] conn_id; a new store is made by airflow-bookmarks init, a lost one comes from a backup.",
  },
};

const BY_STATUS: Readonly<Record<number, string>> = {
  401: "You are logged out",
  403: "You may not see this",
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
