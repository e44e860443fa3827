import { SandboxerError } from "./errors.ts";

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const SHAPE = /^([0-9]{1,9})([smhd])$/;

/** Ten years: more would exceed the range of dates. */
const MAX_DURATION_MS = 3650 * UNIT_MS.d;

/**
 * A duration is a positive integer and one of `s`, `m`, `h`, `d`: `90s`, `4h`; up to ten years. Everything else is
 * refused.
 */
export function parseDurationMs(text: string): number {
  const durationMs = tryParseDurationMs(text);
  if (durationMs === undefined) {
    throw new SandboxerError("bad_request", `"${text.slice(0, 50)}" is not a duration.`, { hint: DURATION_HINT });
  }
  return durationMs;
}

export const DURATION_HINT =
  "Write a positive integer and s, m, h or d, for example 90s, 15m, 4h or 7d; at most 3650d.";

export function tryParseDurationMs(text: string): number | undefined {
  const match = SHAPE.exec(text);
  if (match === null) return undefined;
  const count = Number(match[1]);
  const durationMs = count * UNIT_MS[match[2] as keyof typeof UNIT_MS];
  return count > 0 && durationMs <= MAX_DURATION_MS ? durationMs : undefined;
}
