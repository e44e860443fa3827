import type { Lab } from "../lab.ts";

/** Measures one point after the other; a failure ends the curve, and the report says why. */
export async function asFarAsItGoes(
  lab: Lab,
  places: readonly number[],
  what: (place: number) => string,
  measure: (place: number) => Promise<void>,
): Promise<void> {
  for (const place of places) {
    lab.progress(what(place));
    try {
      await measure(place);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      lab.progress(`  ended: ${why}`);
      lab.skipped.push({ what: `${what(place)}, and more`, why: why.slice(0, 300) });
      return;
    }
  }
}
