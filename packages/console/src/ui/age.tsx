import type { JSX } from "preact";
import { formatSeconds } from "../format/duration.ts";
import { nowMs } from "../live/clock.ts";

/** The time since or until something; the exact time is in the title. */
export function Age({ time, to = false }: { readonly time: string; readonly to?: boolean }): JSX.Element {
  const distanceMs = to ? Date.parse(time) - nowMs.value : nowMs.value - Date.parse(time);
  return (
    <time dateTime={time} title={new Date(time).toLocaleString()}>
      {formatSeconds(distanceMs / 1000)}
    </time>
  );
}
