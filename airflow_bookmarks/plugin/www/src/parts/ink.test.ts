import { createSystem, defaultConfig } from "@chakra-ui/react";
import { describe, expect, it } from "vitest";
import { PALETTES } from "../job/charts/marks";
import { BAR_LOOKS } from "../job/runs/looks";
import { FILL, GRID, INK, type Ink } from "./ink";

type Scheme = "base" | "_dark";

const system = createSystem(defaultConfig);
// The page, and the head of a table.
const GROUNDS = ["bg", "bg.subtle"];
const ROW_POINTED_AT = "gray.subtle";
const SCHEMES: Scheme[] = ["base", "_dark"];
const DRAWN = [...new Set([...Object.values(BAR_LOOKS).map((look) => look.palette), ...PALETTES])];

/** Return a colour as it is painted: a token leads to others, which differ by scheme. */
function painted(name: string, scheme: Scheme): string {
  const token = system.tokens.getByName(`colors.${name}`);
  if (token === undefined) throw new Error(`there is no colour ${name}`);
  const { conditions } = token.extensions;
  const value: string =
    conditions?.[scheme] ?? conditions?.[scheme === "base" ? "_light" : scheme] ?? token.originalValue;
  const leadsTo = /^\{colors\.(.+)\}$/.exec(value)?.[1];
  return leadsTo === undefined ? value : painted(leadsTo, scheme);
}

/** Return how light a colour is, by WCAG 2.2. */
function luminance(hex: string): number {
  const parts = /^#(..)(..)(..)$/.exec(hex)?.slice(1);
  if (parts === undefined) throw new Error(`${hex} is no colour in six digits`);
  const [red = 0, green = 0, blue = 0] = parts
    .map((part) => Number.parseInt(part, 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

describe.each(SCHEMES)("in the scheme %s", (scheme) => {
  const faint = (ink: Ink, ground: string) =>
    DRAWN.map((palette) => ink[scheme].replace("colorPalette", palette))
      .map((color) => [color, contrast(painted(color, scheme), painted(ground, scheme))] as const)
      .filter(([, ratio]) => ratio < 3);

  it.each([...GROUNDS, ROW_POINTED_AT])("lines and edges stand out from %s", (ground) => {
    expect(faint(INK, ground)).toEqual([]);
    expect(faint(GRID, ground)).toEqual([]);
  });
  it.each(GROUNDS)("shapes stand out from %s", (ground) => expect(faint(FILL, ground)).toEqual([]));
});

it("contrast is that of WCAG", () => expect(contrast("#000000", "#ffffff")).toBeCloseTo(21));
