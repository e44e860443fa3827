import type { SandboxRecord } from "@sandboxer/protocol";

/** Facts of E2B's dialect that our records have no field for. Clients neither see nor set these labels. */
const PREFIX = "sandboxer.e2b/";

export const RESERVED = {
  /** What the client named at creation. */
  template: `${PREFIX}template`,
  /** `on`: requests resume the paused sandbox. */
  autoResume: `${PREFIX}auto-resume`,
} as const;

/** Whether requests resume the paused sandbox. */
export function resumesByItself({ labels, state }: Pick<SandboxRecord, "labels" | "state">): boolean {
  return state === "stored" && labels[RESERVED.autoResume] === "on";
}
