import { describe, expect, it } from "vitest";
import type { EventRow } from "../api/model";
import { newestChange } from "./newestChange";

const events = (...kinds: string[]): EventRow[] => kinds.map((kind) => ({ kind, who: "ada", at: null, why: null }));

describe("an undo", () => {
  it("takes the newest change back", () => expect(newestChange(events("rewind", "reset"))?.kind).toBe("rewind"));
  it("takes an undo back too", () => expect(newestChange(events("undo", "reset"))?.kind).toBe("undo"));
  it("passes by what changed no watermark", () =>
    expect(newestChange(events("protect", "request", "unlock", "set"))?.kind).toBe("set"));
  it("may find none", () => expect(newestChange(events("replay", "protect"))).toBeUndefined());
});
