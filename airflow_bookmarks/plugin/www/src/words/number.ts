const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const THREE_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Say a number with separators between thousands: 1,234,567. */
export function inFull(value: number): string {
  return WHOLE.format(value);
}

/** Say bytes in powers of 1000, to three digits: 1.25 MB. */
export function inBytes(bytes: number): string {
  let unit = 0;
  let value = bytes;
  // 999.5 and more would be shown as 1000 of its unit.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${THREE_DIGITS.format(value)} ${UNITS[unit]}`;
}

/** Say how many there are of something: "1 file", "3 files". */
export function count(value: number, one: string, many = `${one}s`): string {
  return `${inFull(value)} ${value === 1 ? one : many}`;
}

/** Say a number in little room, to three digits: 1.23M. */
export function inShort(value: number): string {
  return SHORT.format(value);
}

/** Say amounts of what is not counted in files, by their unit: "3 keys, an unknown number of records". */
export function amountsInWords(amounts: Readonly<Record<string, number | null>> | undefined): string | undefined {
  const said = Object.entries(amounts ?? {}).map(([unit, number]) =>
    number === null ? `an unknown number of ${unit}` : `${inFull(number)} ${number === 1 ? one(unit) : unit}`,
  );
  return said.length > 0 ? said.join(", ") : undefined;
}

/** A unit of a user's own need not be a plural with an s. */
function one(unit: string): string {
  return ["rows", "versions", "snapshots"].includes(unit) ? unit.slice(0, -1) : unit;
}
