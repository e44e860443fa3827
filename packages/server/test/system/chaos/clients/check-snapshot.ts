import { bodyOf, timesOf, type ExecResult } from "./answers.ts";
import { call, refusalOf, wordsOf } from "./call.ts";
import type { LifeRecord } from "./life-record.ts";
import { READ, readShown } from "./programs.ts";

const PATIENCE_MS = 45_000;

/** Makes a copy of a snapshot at a server, looks into it, and deletes it. */
export async function checkSnapshot(record: LifeRecord, snapshot: string, url: string): Promise<void> {
  const restored = await call("POST", `${url}/v1/snapshots/${snapshot}/restore`, { body: {}, patienceMs: PATIENCE_MS });
  record.answered("restore", `restore of ${snapshot}`, restored);
  if (refusalOf(restored)?.code === "snapshot_not_found") {
    record.report("wrong snapshot", `Snapshot ${snapshot} is missing: ${wordsOf(restored)}`);
  }
  const copy = bodyOf(restored, 201) as { id: string } | undefined;
  if (copy === undefined) return;
  const body = { shell: READ };
  const read = await call("POST", `${url}/v1/sandboxes/${copy.id}/exec`, { body, patienceMs: PATIENCE_MS });
  record.answered("read of a copy", `read of ${copy.id}, a copy of ${snapshot}`, read);
  const result = bodyOf(read, 200) as ExecResult | undefined;
  if (result !== undefined) {
    record.take({ kind: "restored", snapshot, ...timesOf(read), ...readShown(result.stdout) });
  }
  await call("DELETE", `${url}/v1/sandboxes/${copy.id}`, { patienceMs: PATIENCE_MS });
}
