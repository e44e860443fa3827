import type { SandboxRecord } from "@sandboxer/client";
import { stateWord } from "@sandboxer/protocol/state-word";
import type { JSX } from "preact";

/** The state as a word and a colour; the word alone is enough. */
export function StateChip({ state, frozen }: Pick<SandboxRecord, "state" | "frozen">): JSX.Element {
  const shown = frozen ? "frozen" : stateWord(state);
  return <span class={`chip chip-${shown}`}>{shown}</span>;
}
