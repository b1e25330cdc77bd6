import createClient from "openapi-fetch";
import type { Refusal } from "./model";
import type { paths } from "./schema";
import { misfit, type Shape } from "./shape";

/** Why there is no answer: the server refused, what stands in front of it did, or something that is no answer came. */
export type Failure = "refused" | "gateway" | "unreachable" | "offline" | "timeout" | "malformed" | "unexpected";

/** What the server, or the way to it, answered instead of what was asked for. Nothing was changed, unless it says so. */
export class ApiError extends Error {
  constructor(
    /** Of HTTP; 0 where nothing answered. */
    readonly status: number,
    message: string,
    readonly refusal?: Refusal,
    readonly failure: Failure = "refused",
  ) {
    super(message);
    this.name = "ApiError";
  }
}

// The server gives up what reads before; a preview or a change may list files for longer than that.
const READ_LIMIT_MS = 30_000;
const CHANGE_LIMIT_MS = 60_000;

// Relative to the page's base, not to "/": Airflow may live below a path.
const client = createClient<paths>({ baseUrl: new URL("bookmarks", document.baseURI).href, fetch: fetchInTime });

/** Fetch an answer, body and all, or end with a TimeoutError. */
function fetchInTime(request: Request): Promise<Response> {
  const limit = AbortSignal.timeout(request.method === "GET" ? READ_LIMIT_MS : CHANGE_LIMIT_MS);
  return fetch(request, { signal: AbortSignal.any([request.signal, limit]) });
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Return what a request gave, if it has the shape. Throws an ApiError for everything else. */
export async function take<T>(request: Promise<Answer<T>>, shape: NoInfer<Shape<T>>): Promise<T> {
  const data = await given(request);
  check(data, shape);
  return data;
}

/** Return the text of what a request gave, if it has the shape: as it came, for checksums are of how it is written. */
export async function takeText<T>(request: Promise<Answer<string>>, shape: Shape<T>): Promise<string> {
  const text = await given(request);
  check(parsed(text), shape);
  return text;
}

async function given<T>(request: Promise<Answer<T>>): Promise<T> {
  const answer = await request.catch((error: unknown) => {
    throw isAbort(error) ? error : lost(error);
  });
  if (!answer.response.ok) throw refused(answer.response.status, answer.error);
  if (answer.data === undefined) throw malformed();
  return answer.data;
}

function check<T>(data: unknown, shape: Shape<T>): void {
  const wrong = misfit(data, shape);
  if (wrong !== undefined) throw unexpected(200, wrong);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed();
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

function lost(error: unknown): ApiError {
  if (error instanceof DOMException && error.name === "TimeoutError") {
    const message = "Airflow's server, or a proxy in front of it, took too long to answer. Try again in a minute.";
    return new ApiError(0, message, undefined, "timeout");
  }
  if (error instanceof SyntaxError) return malformed();
  if (!navigator.onLine) {
    const message = "This browser is offline. Check the connection; the page continues automatically once it is back.";
    return new ApiError(0, message, undefined, "offline");
  }
  const message = "Airflow's server could not be reached. Check the connection, then try again.";
  return new ApiError(0, message, undefined, "unreachable");
}

// Only a success is parsed as JSON or not at all.
function malformed(): ApiError {
  const message =
    "The answer isn't JSON, so it isn't from Airflow: a proxy or login page may have answered instead. Reload the page; if that doesn't help, ask whoever maintains the proxy in front of Airflow.";
  return new ApiError(200, message, undefined, "malformed");
}

function unexpected(status: number, field: string): ApiError {
  const message = `The answer is not what this page expects (${field}). The page and the server may have different versions: reload the page. If that doesn't help, ask your Airflow administrator whether all API servers have the same version of airflow-bookmarks.`;
  return new ApiError(status, message, undefined, "unexpected");
}

function refused(status: number, body: unknown): ApiError {
  const refusal = asRefusal(body);
  // A login that has run out is refused by Airflow as forbidden, under this name; what a user may not do, under another.
  if (status === 401 || refusal?.error === "Forbidden") return new ApiError(401, plain(401), refusal);
  if (refusal === undefined && GATEWAY.has(status)) {
    const message = `The server in front of Airflow answered ${status}: it got no answer from Airflow. Airflow's API server may be starting or overloaded. Try again in a minute; if it persists, check that the server is running.`;
    return new ApiError(status, message, undefined, "gateway");
  }
  return new ApiError(status, refusal?.message ?? plain(status), refusal);
}

const GATEWAY: ReadonlySet<number> = new Set([502, 503, 504]);

function asRefusal(body: unknown): Refusal | undefined {
  const isOne = typeof body === "object" && body !== null && "message" in body && typeof body.message === "string";
  return isOne ? (body as Refusal) : undefined;
}

function plain(status: number): string {
  if (status === 401) return "You are logged out. Log in to Airflow again, then reload this page.";
  if (status === 403) return "You don't have permission to do this. Ask whoever manages access to Airflow.";
  return `Airflow's server answered with status ${status}. Its log says why.`;
}

export default client;
