import { randomUUID } from "node:crypto";
import type { NewSnapshot } from "../../src/checkpoints/snapshot-types.ts";

/** A snapshot that is about to be taken. */
export function newSnapshot(changes: Partial<NewSnapshot> = {}): NewSnapshot {
  return {
    id: randomUUID(),
    name: null,
    reason: "named",
    mode: "filesystem",
    labels: {},
    sandbox_id: randomUUID(),
    sandbox_name: null,
    parent: null,
    created_at: "2026-11-15T05:00:00.000Z",
    backend: "fake",
    profile: null,
    key: null,
    spec_hash: null,
    spec: { env: {}, resources: {}, network: "none" },
    flags: {
      enable_checkpoint: true,
      enable_idle_timeout_auto_checkpoint: false,
      enable_sandbox_handoff: false,
      on_disconnect: "keep",
    },
    idle_timeout: 300,
    ...changes,
  };
}
