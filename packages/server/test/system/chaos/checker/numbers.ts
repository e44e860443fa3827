export function commonLength(one: readonly number[], other: readonly number[]): number {
  const different = one.findIndex((number, index) => number !== other[index]);
  return different === -1 ? one.length : different;
}

export function firstRepeated(numbers: readonly number[]): number | undefined {
  const seen = new Set<number>();
  return numbers.find((number) => seen.has(number) || !seen.add(number));
}

const SHOWN = 12;

/** The end of a list of numbers, for people. */
export function shown(numbers: readonly number[]): string {
  return `[${numbers.length > SHOWN ? "… " : ""}${numbers.slice(-SHOWN).join(" ")}]`;
}
