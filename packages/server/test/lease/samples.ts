import { createHash } from "node:crypto";
import type { CheckpointReference } from "@sandboxer/protocol";
import type { NewSandbox } from "../../src/lease/head.ts";

export function newSandbox(): NewSandbox {
  return {
    idleTimeoutSeconds: 300,
    backend: "fake",
    spec: { network: "none" },
    flags: {
      enable_checkpoint: true,
      enable_idle_timeout_auto_checkpoint: false,
      enable_sandbox_handoff: false,
      on_disconnect: "keep",
    },
    tokenHash: null,
  };
}

export function checkpoint(number: number): CheckpointReference {
  return {
    name: `checkpoint_${number}.img`,
    sha256: createHash("sha256").update(`${number}`).digest("hex"),
    size_bytes: number,
    created_at: new Date(number).toISOString(),
    kind: "fake-state",
    parent: null,
  };
}
