import type { Transport } from "@sandboxer/client/transport";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { findSandbox, sandboxId } from "./sandbox.ts";
import { findSnapshot, snapshotId } from "./snapshot.ts";

export type SavedState =
  | { readonly kind: "snapshot"; readonly id: string }
  | { readonly kind: "sandbox"; readonly id: string; readonly checkpoint: string | undefined };

/** `NAME` of a snapshot or a sandbox, `SANDBOX@CHECKPOINT`, and `snapshot:NAME` or `sandbox:NAME` if both have it. */
export async function findSavedState(client: Transport, given: string): Promise<SavedState> {
  const [, prefix, rest] = /^(snapshot|sandbox):(.+)$/s.exec(given) ?? [];
  if (prefix === "snapshot") return { kind: "snapshot", id: await snapshotId(client, rest ?? "") };
  const [sandbox = "", checkpoint] = (rest ?? given).split("@", 2);
  if (prefix === "sandbox" || checkpoint !== undefined) {
    return { kind: "sandbox", id: await sandboxId(client, sandbox), checkpoint };
  }
  const snapshot = await findSnapshot(client, given).catch(ifNotFound);
  const found = await findSandbox(client, given).catch(ifNotFound);
  if (snapshot !== undefined && found !== undefined) {
    throw new SandboxerError("bad_request", `"${given}" is both a snapshot and a sandbox.`, {
      hint: `Write snapshot:${given} or sandbox:${given}.`,
    });
  }
  if (snapshot !== undefined) return { kind: "snapshot", id: snapshot.id };
  if (found !== undefined) return { kind: "sandbox", id: found.id, checkpoint: undefined };
  throw new SandboxerError("snapshot_not_found", `There is no snapshot or sandbox "${given}".`, {
    hint: "List them with `sandboxer snapshots list` and `sandboxer ls`.",
  });
}

function ifNotFound(error: unknown): undefined {
  const codes = ["snapshot_not_found", "sandbox_not_found", "sandbox_destroyed"];
  if (error instanceof SandboxerError && codes.includes(error.code)) return undefined;
  throw error;
}
