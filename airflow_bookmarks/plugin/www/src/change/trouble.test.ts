import { describe, expect, it, vi } from "vitest";
import { ApiError } from "../api/client";
import type { EventRow, Refusal } from "../api/model";
import { eventsAt, mayHaveBeenMade, troubleOf } from "./trouble";

// The client of the API asks the page where it is, and here is none.
vi.hoisted(() => vi.stubGlobal("document", { baseURI: "http://airflow.example/" }));

function refused(status: number, error: string, more: Partial<Refusal> = {}): ApiError {
  const message = more.message ?? "Nothing was changed.";
  return new ApiError(status, message, { error, ...more, message });
}

describe("a refusal", () => {
  it.each([
    [refused(409, "JobBusyError"), "A run is using this job", "force"],
    [refused(409, "ChangedMeanwhileError"), "The job has changed since your preview", "preview"],
    [refused(409, "BackfillStoppedError"), "Some jobs went back, others did not", "preview"],
    [refused(409, "ProtectedError"), "The job is protected", "preview"],
    [refused(409, "ChangeRefusedError"), "Change refused", "nothing"],
    [refused(403, "ForbiddenError"), "You don't have permission to do this", "nothing"],
    [refused(404, "RunUnknownError"), "There is no such run", "nothing"],
    [refused(404, "JobUnknownError"), "There is no such job", "nothing"],
    [refused(422, "OptionError"), "Invalid change", "nothing"],
    [refused(503, "StoreAccessError"), "The state store can't be used", "nothing"],
    [refused(503, "StoreUnavailableError"), "The state store does not answer", "nothing"],
    [refused(409, "constructor"), "Something went wrong", "nothing"],
    [new Error("none of the server's"), "Something went wrong", "nothing"],
  ])("%s is titled %s", (error, title, offer) => expect(troubleOf(error)).toMatchObject({ title, offer }));

  it("lists what is wrong with the request", () =>
    expect(
      troubleOf(refused(422, "RequestInvalid", { wrong: [{ where: "body.reason", what: "too long" }] })).wrong,
    ).toEqual(["body.reason: too long"]));
});

describe("an answer that was lost", () => {
  it.each([
    [new ApiError(0, "Airflow's server could not be reached.")],
    [new ApiError(504, "The server in front of Airflow answered 504.", undefined, "gateway")],
    [new ApiError(0, "It took too long.", undefined, "timeout")],
    [new ApiError(0, "This browser is offline.", undefined, "offline")],
    [new ApiError(200, "The answer is no JSON.", undefined, "malformed")],
    [new ApiError(200, "The answer is not what this page expects.", undefined, "unexpected")],
    [refused(503, "StoreUnavailableError", { message: "If it was a change, look whether it was made. Try again" })],
    [refused(500, "InternalError", { message: "an unexpected error" })],
  ])("may be of a change that was made: %s", (error) => {
    expect(mayHaveBeenMade(error)).toBe(true);
    expect(troubleOf(error)).toMatchObject({ title: "We couldn't confirm whether the change was made", offer: "look" });
  });
  it.each([
    [refused(503, "StoreUnavailableError", { message: "30 requests wait. Nothing was read or changed." })],
    [refused(503, "StoreAccessError", { message: "no permission. Nothing was changed." })],
    [refused(409, "JobBusyError")],
    [new Error("of the page")],
  ])("is not one that says that nothing was changed: %s", (error) => expect(mayHaveBeenMade(error)).toBe(false));
});

describe("what is noted since a version", () => {
  const event = (version_before?: number): EventRow => ({
    kind: "reset",
    who: null,
    at: null,
    why: null,
    ...(version_before === undefined ? {} : { version_before }),
  });
  it("is what met that version or a later one", () =>
    expect(eventsAt(4, [event(5), event(4), event(3), event()])).toEqual([event(5), event(4)]));
});
