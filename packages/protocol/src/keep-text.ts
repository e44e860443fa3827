/** A retention rule, see {@link keepSchema}. Without a schema parser, for the CLI. */
export interface KeepCounts {
  keep_last?: number | undefined;
  hourly?: number | undefined;
  daily?: number | undefined;
}

export const KEEP_MOST = 1_000_000;

export const KEEP_HINT = "Write how many of the newest to keep (1 to 1000000), or last=N,hourly=N,daily=N.";

const NAMES = { last: "keep_last", hourly: "hourly", daily: "daily" } as const;

/** Parses a text from flags and files: `3`, or `last=3,hourly=24,daily=7`. Undefined: it is invalid. */
export function parseKeep(text: string): KeepCounts | undefined {
  const keep: KeepCounts = {};
  for (const part of /^\d+$/.test(text) ? [`last=${text}`] : text.split(",")) {
    const [, word = "", digits = ""] = /^ *([a-z]+)=([0-9]{1,7}) *$/.exec(part) ?? [];
    const name = Object.hasOwn(NAMES, word) ? NAMES[word as keyof typeof NAMES] : undefined;
    const count = Number(digits);
    if (name === undefined || keep[name] !== undefined || count > KEEP_MOST) return undefined;
    keep[name] = count;
  }
  return keepsSomething(keep) ? keep : undefined;
}

export function keepsSomething({ keep_last = 0, hourly = 0, daily = 0 }: KeepCounts): boolean {
  return keep_last + hourly + daily > 0;
}

/** The form that {@link parseKeep} accepts. */
export function formatKeep(keep: KeepCounts): string {
  return Object.entries(NAMES)
    .flatMap(([word, name]) => (keep[name] === undefined ? [] : [`${word}=${keep[name]}`]))
    .join(",");
}
