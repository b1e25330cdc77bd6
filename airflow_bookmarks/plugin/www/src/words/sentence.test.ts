import { expect, it } from "vitest";
import { sentence } from "./sentence";

it.each([
  ["the state store is gone", "The state store is gone."],
  ["job 'a' moved. Nothing was changed.", "Job 'a' moved. Nothing was changed."],
])("%s is said as %s", (said, text) => expect(sentence(said)).toBe(text));
