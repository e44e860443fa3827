import type { MasterKey } from "../../checkpoints/keys/master-key.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../context.ts";
import { isProvable, proveSnapshot } from "./prove-snapshot.ts";

/** Where the server proves snapshots by itself: this one, when its turn comes. Those that are restored anyway are left out. */
export function proveBehind(context: ManagerContext, snapshot: StoredSnapshot, presentedKey?: MasterKey): void {
  const { proveSnapshots = false, observer } = context.options;
  const wanted = snapshot.reason === "request" || snapshot.reason === "named";
  if (!proveSnapshots || !wanted || !isProvable(context, snapshot)) return;
  if (context.proofs.full) {
    return observer.problem("a snapshot is not proven: too many wait for it", { snapshotId: snapshot.id });
  }
  // How it went is in its record, in the events and in the log.
  void proveSnapshot(context, snapshot.id, { encryption: { presentedKey } }).catch(() => {});
}
