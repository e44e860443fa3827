import { randomUUID } from "node:crypto";
import { open } from "node:fs/promises";
import { mapAtOnce } from "../../packages/server/src/support/map-at-once.ts";
import { openStore } from "../../packages/server/src/store/open-store.ts";

const AT_ONCE = 32;

/**
 * Puts many sandboxes beside a stored one, each with a copy of its head under another id, and returns their ids. They
 * are written like the server's heads, but not synced one by one, which would take an hour.
 */
export async function copyHeads(folder: string, sandboxId: string, count: number): Promise<string[]> {
  const store = await openStore(folder);
  const cell = await store.readCell(`${sandboxId}/metadata.json`);
  if (cell === undefined) throw new Error(`${sandboxId} has no head.`);
  const head = JSON.parse(Buffer.from(cell.body).toString("utf8")) as Record<string, unknown>;
  const ids = Array.from({ length: count }, () => randomUUID());
  await withoutSync(folder, () =>
    mapAtOnce(ids, AT_ONCE, async (id) => {
      const body = Buffer.from(`${JSON.stringify({ ...head, nonce: randomUUID() }, undefined, 2)}\n`);
      await store.swapCell(`${id}/metadata.json`, undefined, body);
    }),
  );
  return ids;
}

async function withoutSync(folder: string, work: () => Promise<unknown>): Promise<void> {
  const handle = await open(folder, "r");
  const prototype = Object.getPrototypeOf(handle) as { sync: () => Promise<void> };
  await handle.close();
  const { sync } = prototype;
  prototype.sync = async () => {};
  try {
    await work();
  } finally {
    prototype.sync = sync;
  }
}
