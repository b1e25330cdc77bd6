import { MutationObserver, onlineManager } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { mayHaveBeenMade } from "../change/trouble";
import client, { ApiError, take, takeText } from "./client";
import { diagnosisOf } from "./diagnosis";
import { mayHelpToAskAgain } from "./queries";
import { newQueryClient } from "./queryClient";
import { CHANGED, EVENTS, EXPORTED, JOBS, misfit } from "./shape";

// The client of the API asks the page where it is, and here is none.
vi.hoisted(() => vi.stubGlobal("document", { baseURI: "http://airflow.example/" }));

const limits: { ms: number; controller: AbortController }[] = [];

beforeEach(() => {
  vi.stubGlobal("navigator", { onLine: true });
  limits.length = 0;
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    const controller = new AbortController();
    limits.push({ ms, controller });
    return controller.signal;
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function answering(body: string, status = 200, type = "application/json") {
  const answer = async () => new Response(body, { status, headers: { "content-type": type } });
  vi.stubGlobal("fetch", vi.fn(answer));
}

function failing(error: Error) {
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => {
      throw error;
    }),
  );
}

/** A server that takes a request and never answers. */
function hanging() {
  vi.stubGlobal(
    "fetch",
    (_: Request, { signal }: { signal: AbortSignal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
}

function runOut() {
  limits[0]?.controller.abort(new DOMException("signal timed out", "TimeoutError"));
}

function getJobs(signal?: AbortSignal) {
  return take(client.GET("/api/v1/jobs", signal === undefined ? {} : { signal }), JOBS);
}

function postChange() {
  const body = { kind: "undo", reason: "why", confirm: "a", expected_version: 1 } as never;
  return take(client.POST("/api/v1/jobs/{job}/changes", { params: { path: { job: "a" } }, body }), CHANGED);
}

async function errorOf(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiError)) throw new Error(`no ApiError: ${error}`);
  return error;
}

const refusal = (error: string) => JSON.stringify({ error, message: "the reason. Nothing was changed." });

describe("what is no answer", () => {
  it.each([
    ["HTML of a proxy", "<html>502</html>", 502, "gateway", "The server in front of Airflow can't reach it"],
    ["a proxy without a word", "", 504, "gateway", "The server in front of Airflow can't reach it"],
    ["JSON of a proxy", '{"code": 1}', 503, "gateway", "The server in front of Airflow can't reach it"],
    ["JSON that is cut", '{"jobs": [', 200, "malformed", "The answer can't be read"],
    ["a login page", "<html>log in</html>", 200, "malformed", "The answer can't be read"],
    ["nothing", "", 200, "malformed", "The answer can't be read"],
    ["a list", "[]", 200, "unexpected", "The answer is not what was expected"],
    ["null", "null", 200, "unexpected", "The answer is not what was expected"],
    ["another object", '{"jobs": {}, "total": 1}', 200, "unexpected", "The answer is not what was expected"],
  ])("%s has words of its own", async (_, body, status, failure, title) => {
    answering(body, status);
    const error = await errorOf(getJobs());
    expect([error.failure, error.status, diagnosisOf(error).title]).toEqual([failure, status, title]);
  });

  it("of a proxy says which status", async () => {
    answering("<html>", 502, "text/html");
    expect((await errorOf(getJobs())).message).toContain("The server in front of Airflow answered 502");
  });

  it("is offline where the browser says so, and unreachable else", async () => {
    failing(new TypeError("Failed to fetch"));
    expect((await errorOf(getJobs())).failure).toBe("unreachable");
    vi.stubGlobal("navigator", { onLine: false });
    expect((await errorOf(getJobs())).failure).toBe("offline");
  });
});

describe("an answer that does not come", () => {
  it("is given up after a while", async () => {
    hanging();
    const asked = errorOf(getJobs());
    runOut();
    const error = await asked;
    expect([limits[0]?.ms, error.failure, error.status]).toEqual([30_000, "timeout", 0]);
    expect(mayHelpToAskAgain(0, error)).toBe(false);
  });

  it("is given up while its body comes", async () => {
    vi.stubGlobal("fetch", async (_: Request, { signal }: { signal: AbortSignal }) => {
      const stream = new ReadableStream({
        start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)),
      });
      queueMicrotask(runOut);
      return new Response(stream, { status: 200 });
    });
    expect((await errorOf(getJobs())).failure).toBe("timeout");
  });

  it("of a change leaves it open whether the change was made", async () => {
    hanging();
    const asked = errorOf(postChange());
    runOut();
    const error = await asked;
    expect([limits[0]?.ms, error.failure, mayHaveBeenMade(error)]).toEqual([60_000, "timeout", true]);
  });

  it("and is not waited for any more is no error of the way", async () => {
    hanging();
    const gone = new AbortController();
    const asked = getJobs(gone.signal);
    gone.abort();
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("a change", () => {
  afterEach(() => onlineManager.setOnline(true));

  it("that is sent offline ends, and does not wait for a network", async () => {
    failing(new TypeError("Failed to fetch"));
    vi.stubGlobal("navigator", { onLine: false });
    onlineManager.setOnline(false);
    const change = new MutationObserver(newQueryClient(), { mutationFn: postChange });
    const error = await errorOf(change.mutate());
    expect([error.failure, mayHaveBeenMade(error)]).toEqual(["offline", true]);
  });

  it.each([
    ["<html>ok</html>", 200],
    ['{"said": 1}', 200],
    ["<html>504</html>", 504],
  ])("answered by %s may have been made", async (body, status) => {
    answering(body, status);
    expect(mayHaveBeenMade(await errorOf(postChange()))).toBe(true);
  });
});

describe("a store", () => {
  it.each([
    ["NotInTimeError", 503],
    ["StateCorruptError", 500],
    ["StoreAccessError", 503],
    ["StoreThrottledError", 503],
    ["StoreUnavailableError", 503],
    ["TableLayoutError", 503],
    ["TableMissingError", 503],
  ])("that fails with %s has words of its own, and what to do", async (name, status) => {
    answering(refusal(name), status);
    const error = await errorOf(getJobs());
    titles.add(diagnosisOf(error).title);
    expect(error.message).toBe("the reason. Nothing was changed.");
    expect(diagnosisOf(error).advice).toBeTruthy();
  });
  const titles = new Set<string>();
  it("is never taken for another failure", () => expect(titles.size).toBe(7));
  it("whose error has an odd name is no fault of the page", async () => {
    answering(refusal("constructor"), 500);
    expect(diagnosisOf(await errorOf(getJobs())).title).toBe("Something went wrong");
  });
});

describe("the shape of an answer", () => {
  it("may have more than is looked at", () =>
    expect(misfit({ events: [], total: 0, more: null }, EVENTS)).toBeUndefined());
  it.each([
    [{ events: [], total: "0" }, "total"],
    [{ total: 0 }, "events"],
    [{ events: {}, total: 0 }, "events"],
    ["events", "the whole"],
    [null, "the whole"],
  ])("%j is not fit for events: %s", (answer, field) => expect(misfit(answer, EVENTS)).toBe(field));
});

describe("a text to save", () => {
  const whole = '{"format": 1, "namespace": "default", "jobs": {"a": {"rows": 1.0}}, "blobs": {}}';
  const get = () =>
    takeText(client.GET("/api/v1/jobs/{job}/export", { params: { path: { job: "a" } }, parseAs: "text" }), EXPORTED);

  it("stays as it came, of which its checksums are", async () => {
    answering(whole);
    await expect(get()).resolves.toBe(whole);
  });

  it.each([
    ["<html>Log in</html>", 200, "malformed"],
    ['{"format": 1}', 200, "unexpected"],
    ['{"error": "ExportRefusedError", "message": "it is too large"}', 409, "refused"],
  ])("that is %j is an error", async (body, status, failure) => {
    answering(body, status);
    await expect(get()).rejects.toMatchObject({ failure, status });
  });
});
