import type { SandboxRecord } from "@sandboxer/protocol";
import { E2bError } from "./errors.ts";

/** Facts of E2B's dialect that our records have no field for. E2B's clients neither see nor set these labels. */
const PREFIX = "sandboxer.e2b/";

export const RESERVED = {
  /** The template that the client named at creation. */
  template: `${PREFIX}template`,
  /** `on`: requests resume the paused sandbox. */
  autoResume: `${PREFIX}auto-resume`,
  /** `off`: after a pause at the end of its time, it starts again with its files only. */
  autoPauseMemory: `${PREFIX}auto-pause-memory`,
  /** `private`: its ports open for holders of the token only. */
  traffic: `${PREFIX}traffic`,
} as const;

type Labels = Readonly<Record<string, string>>;

/** The labels that E2B's clients call metadata. */
export function metadataOf(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !name.startsWith(PREFIX)));
}

export function checkMetadata(metadata: Labels): void {
  const reserved = Object.keys(metadata).find((name) => name.startsWith(PREFIX));
  if (reserved !== undefined) throw new E2bError(400, `The metadata key ${reserved} is reserved for the server.`);
}

/** Whether the sandbox was created by a client of E2B. */
export function isOfE2b(labels: Labels): boolean {
  return labels[RESERVED.template] !== undefined;
}

/** Whether requests resume the sandbox, which is paused or has lost its server. */
export function resumesByItself({ labels, state, owner }: Pick<SandboxRecord, "labels" | "state" | "owner">): boolean {
  return labels[RESERVED.autoResume] === "on" && (state === "stored" || owner?.here === false);
}
