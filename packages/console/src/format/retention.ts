import type { SandboxRecord } from "@sandboxer/client";

export type Retention = NonNullable<SandboxRecord["retention"]>;
export type Keep = NonNullable<Retention["checkpoints"]>;

/** A retention rule in words; undefined: not set for this sandbox. */
export function keepWords(keep: Keep | undefined): string {
  if (keep === undefined) return "server default";
  const parts = [
    [keep.keepLast, "the newest", "the newest"],
    [keep.hourly, "the newest of the last hour", "the newest of each of the last", "hours"],
    [keep.daily, "the newest of the last day", "the newest of each of the last", "days"],
  ] as const;
  return parts
    .flatMap(([count, one, many, unit]) => {
      if (count === undefined || count === 0) return [];
      return [count === 1 ? one : [many, count.toLocaleString(), unit].filter(Boolean).join(" ")];
    })
    .join("; ");
}
