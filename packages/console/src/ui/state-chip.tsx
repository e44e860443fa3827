import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";

/** The state as a word and a colour; the word alone is enough. */
export function StateChip({ state, frozen }: Pick<SandboxRecord, "state" | "frozen">): JSX.Element {
  const shown = frozen ? "frozen" : state;
  return <span class={`chip chip-${shown}`}>{shown}</span>;
}
