import { expect, it } from "vitest";
import { healthWords, paletteOfHealth } from "./HealthBadge";
import { paletteOf, stateWords } from "./StateBadge";

it.each(["SLEEPY", "", "constructor", "__proto__", "toString"])(
  "a state that is not known is its own word: %j",
  (state) => {
    expect([paletteOfHealth(state), healthWords(state)]).toEqual(["gray", state]);
    expect([paletteOf(state), stateWords(state)]).toEqual(["gray", state]);
  },
);

it("a state that is known is explained", () => {
  expect(healthWords("OK")).toBe("commits as usual");
  expect(stateWords("IDLE")).toBe("everything committed is published");
});

it("a job that is idle is green by its health alone: its last attempt may have failed", () => {
  expect([paletteOf("IDLE"), paletteOfHealth("OK")]).toEqual(["gray", "green"]);
  expect(["NEW", "TAKEN BACK"].map(paletteOfHealth)).not.toContain("green");
});
