import { Option } from "commander";
import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { stateOfWord, stateWord } from "@sandboxer/protocol/state-word";

/** The states of the protocol, without its schemas; the compiler compares them. */
const SANDBOX_STATES = Object.keys({
  creating: true,
  restoring: true,
  running: true,
  saving: true,
  destroying: true,
  stored: true,
  unreachable: true,
  destroyed: true,
} satisfies Record<SandboxRecord["state"], true>);

/** Its value is a state of the protocol. */
export function sandboxStateOption(flags: string, description: string): Option {
  const words = SANDBOX_STATES.map(stateWord);
  const option = new Option(flags, description).choices(words);
  const check = option.parseArg;
  return option.argParser((word: string, previous: string) => stateOfWord(check?.(stateWord(word), previous) ?? word));
}

export const SNAPSHOT_STATES = Object.keys({ ready: true, damaged: true, missing: true } satisfies Record<
  SnapshotInfo["state"],
  true
>);
