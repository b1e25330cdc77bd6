import createClient from "openapi-fetch";
import type { Refusal } from "./model";
import type { paths } from "./schema";

/** What the server, or the way to it, answered instead of what was asked for. Nothing was changed, unless it says so. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly refusal?: Refusal,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

// Relative to the page's base, not to "/": Airflow may live below a path.
const client = createClient<paths>({ baseUrl: new URL("bookmarks", document.baseURI).href });

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Return what a request gave. Throws an ApiError for everything else, a server that can't be reached (status 0) too. */
export async function take<T>(request: Promise<Answer<T>>): Promise<T> {
  const answer = await request.catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "Airflow's server could not be reached. Check the connection, then try again.");
  });
  if (answer.response.ok && answer.data !== undefined) return answer.data;
  const refusal = asRefusal(answer.error);
  // A login that has run out is refused by Airflow as forbidden, under this name; what a user may not do, under another.
  const isLoggedOut = answer.response.status === 401 || refusal?.error === "Forbidden";
  if (isLoggedOut) throw new ApiError(401, plain(401), refusal);
  throw new ApiError(answer.response.status, refusal?.message ?? plain(answer.response.status), refusal);
}

function asRefusal(body: unknown): Refusal | undefined {
  const isOne = typeof body === "object" && body !== null && "message" in body && typeof body.message === "string";
  return isOne ? (body as Refusal) : undefined;
}

function plain(status: number): string {
  if (status === 401) return "You are logged out. Log in to Airflow again, then reload this page.";
  if (status === 403) return "You may not do this. Ask whoever manages access to Airflow for the permission.";
  return `Airflow's server answered with status ${status}. Its log says why.`;
}

export default client;
