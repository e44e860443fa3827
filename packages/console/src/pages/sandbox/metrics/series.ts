import type { SandboxUsage } from "@sandboxer/client";
import { formatBytes } from "../../../format/bytes.ts";

/** One measured value over time. */
export interface Measure {
  readonly title: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
  readonly limit: number | null;
  readonly format: (value: number) => string;
  /** The distances between two ticks that read well; absent: decimal ones. */
  readonly increments?: readonly number[];
}

/** Powers of two, so that a tick reads 512 MiB instead of 476.8 MiB. */
const BINARY = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** No line is drawn between points that are further apart: the sandbox was saved or frozen. */
const GAP_SECONDS = 75;

export function measuresOf({ used, limits }: SandboxUsage): readonly Measure[] {
  const gaps = gapsOf(used.time);
  const column = (values: readonly (number | null)[]): Pick<Measure, "times" | "values"> => ({
    times: insert(used.time, gaps, (after) => after.at),
    values: insert(values, gaps, () => null),
  });
  return [
    { title: "CPU", ...column(used.cpus), limit: limits.cpus, format: (value) => `${(value * 100).toFixed(0)} %` },
    {
      title: "Memory",
      ...column(used.memoryBytes),
      limit: limits.memoryBytes,
      format: formatBytes,
      increments: BINARY,
    },
    { title: "Disk", ...column(used.diskBytes), limit: limits.diskBytes, format: formatBytes, increments: BINARY },
  ];
}

/** The newest points only. */
export function sinceMinutes(usage: SandboxUsage, minutes: number): SandboxUsage {
  const { used } = usage;
  const newest = used.time.at(-1) ?? 0;
  const first = used.time.findIndex((time) => time >= newest - minutes * 60);
  const from = Math.max(0, first);
  return {
    ...usage,
    used: {
      time: used.time.slice(from),
      memoryBytes: used.memoryBytes.slice(from),
      diskBytes: used.diskBytes.slice(from),
      cpus: used.cpus.slice(from),
    },
  };
}

interface Gap {
  readonly index: number;
  readonly at: number;
}

function gapsOf(times: readonly number[]): readonly Gap[] {
  return times.flatMap((time, index) => {
    const before = times[index - 1];
    return before !== undefined && time - before > GAP_SECONDS ? [{ index, at: before + 1 }] : [];
  });
}

function insert<Value>(values: readonly Value[], gaps: readonly Gap[], filler: (gap: Gap) => Value): readonly Value[] {
  return values.flatMap((value, index) => {
    const gap = gaps.find((each) => each.index === index);
    return gap === undefined ? [value] : [filler(gap), value];
  });
}
