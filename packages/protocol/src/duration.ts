import { SandboxerError } from "./errors.ts";

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const SHAPE = /^([0-9]{1,9})([smhd])$/;

/** A duration is a positive integer and one of `s`, `m`, `h`, `d`: `90s`, `4h`. Everything else is refused. */
export function parseDurationMs(text: string): number {
  const durationMs = tryParseDurationMs(text);
  if (durationMs === undefined) {
    throw new SandboxerError("bad_request", `"${text}" is not a duration.`, { hint: DURATION_HINT });
  }
  return durationMs;
}

export const DURATION_HINT = "Write a positive integer and s, m, h or d, for example 90s, 15m, 4h or 7d.";

export function tryParseDurationMs(text: string): number | undefined {
  const match = SHAPE.exec(text);
  if (match === null) return undefined;
  const count = Number(match[1]);
  const durationMs = count * UNIT_MS[match[2] as keyof typeof UNIT_MS];
  return count > 0 && Number.isSafeInteger(durationMs) ? durationMs : undefined;
}
