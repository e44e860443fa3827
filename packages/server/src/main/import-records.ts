import { rename } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { asSandboxerError, headSchema, isSandboxId } from "@sandboxer/protocol";
import type { Logger } from "pino";
import { z } from "zod";
import type { SnapshotFile } from "../checkpoints/snapshot-file.ts";
import type { SnapshotRepository } from "../checkpoints/snapshot-repository.ts";
import type { KeyClaims } from "../lease/key-claims.ts";
import type { Ownership } from "../lease/ownership.ts";
import type { ObjectStore } from "../store/store.ts";
import { LockedJsonFile } from "../support/locked-json-file.ts";
import { isServerAlive } from "./peers.ts";
import { isProcessAlive } from "../support/kill.ts";
import { undefinedIf } from "../support/errno.ts";

/** Records of provider-kept sandboxes from releases before every sandbox had a head. See COMPATIBILITY.md. */
const recordSchema = headSchema
  .pick({
    backend: true,
    spec: true,
    flags: true,
    idle_timeout: true,
    token_hash: true,
    about: true,
    lineage: true,
    createdAt: true,
  })
  .extend({
    stopped_at: z.string().nullable(),
    holder: z.looseObject({ url: z.string().nullable(), host: z.string(), pid: z.number() }).nullable().default(null),
  });
type OldRecord = z.infer<typeof recordSchema>;

const sandboxesSchema = z.looseObject({ format: z.literal(1), sandboxes: z.record(z.string(), recordSchema) });
const claimsSchema = z.looseObject({ format: z.literal(1), claims: z.array(z.tuple([z.string(), z.string()])) });

const CELLS = "outliving-sandboxes";

export interface ImportTargets {
  readonly store: ObjectStore;
  readonly ownership: Ownership;
  readonly claims: KeyClaims;
}

/**
 * Creates heads, once, for sandboxes that an earlier release recorded in files of the data directory or in cells of the
 * store. Sandboxes that a server of that release still runs are left to it until the next start.
 */
export async function importRecords(dataDirectory: string, targets: ImportTargets, log: Logger): Promise<void> {
  const reported = (what: string, work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) => log.warn({ err: error }, `${what} of an earlier release could not be imported`));
  await reported("the sandboxes", importSandboxFile(join(dataDirectory, "sandboxes.json"), targets));
  await reported("the keys", importClaimFile(join(dataDirectory, "acquire-keys.json"), targets.claims));
  await reported("the stored sandboxes", importCells(targets));
}

async function importSandboxFile(path: string, targets: ImportTargets): Promise<void> {
  const file = new LockedJsonFile(path, sandboxesSchema, { format: 1 as const, sandboxes: {} });
  const records = Object.entries((await file.read()).sandboxes);
  const taken = new Set<string>();
  for (const [sandboxId, record] of records) if (await takeOver(targets, sandboxId, record)) taken.add(sandboxId);
  if (taken.size === records.length) return setAside(path);
  await file.change(({ sandboxes, ...content }) => ({
    ...content,
    sandboxes: Object.fromEntries(Object.entries(sandboxes).filter(([sandboxId]) => !taken.has(sandboxId))),
  }));
}

async function importCells(targets: ImportTargets): Promise<void> {
  const { store } = targets;
  for await (const key of store.listCells(CELLS)) {
    const cell = await store.readCell(key);
    const record = cell && recordSchema.parse(JSON.parse(Buffer.from(cell.body).toString("utf8")));
    const sandboxId = key.slice(CELLS.length + 1, -".json".length);
    if (record !== undefined && (await takeOver(targets, sandboxId, record))) await store.deleteCell(key);
  }
}

/** Whether the sandbox has a head now. */
async function takeOver({ ownership }: ImportTargets, sandboxId: string, record: OldRecord): Promise<boolean> {
  const { stopped_at, holder, idle_timeout: idleTimeoutSeconds, token_hash: tokenHash, ...known } = record;
  if (!isSandboxId(sandboxId)) return true;
  if (stopped_at === null && holder !== null && (await isHolderAlive(holder))) return false;
  const { about, ...rest } = known;
  let epoch: number;
  try {
    ({ epoch } = await ownership.create(sandboxId, {
      ...rest,
      ...(about === undefined ? {} : { about }),
      idleTimeoutSeconds,
      tokenHash,
      residence: "provider",
    }));
  } catch (thrown) {
    // Another server was faster.
    if ((await ownership.read(sandboxId)) !== undefined) return true;
    throw asSandboxerError(thrown);
  }
  await ownership.release({ id: sandboxId, epoch }, { stoppedAt: stopped_at ?? new Date().toISOString() });
  return true;
}

/**
 * A process of this machine is checked by its number, one of another machine by its address: those releases had no
 * other way.
 */
async function isHolderAlive({ url, host, pid }: NonNullable<OldRecord["holder"]>): Promise<boolean> {
  if (host === hostname() && !isProcessAlive(pid)) return false;
  return url !== null && (await isServerAlive(url));
}

async function importClaimFile(path: string, claims: KeyClaims): Promise<void> {
  const file = new LockedJsonFile(path, claimsSchema, { format: 1 as const, claims: [] });
  for (const [key, sandboxId] of (await file.read()).claims) await claims.take(key, sandboxId, async () => true);
  await setAside(path);
}

async function setAside(path: string): Promise<void> {
  await rename(path, `${path}.imported`).catch(undefinedIf("ENOENT"));
}

/**
 * Snapshots of a server without a store: their states are at their providers, and their records were only in this file.
 */
export async function importSnapshots(file: SnapshotFile, library: SnapshotRepository): Promise<void> {
  const known = new Set((await library.list()).map(({ id }) => id));
  for (const record of await file.read()) {
    if (record.state !== "ready" || record.image_sha256 !== null || known.has(record.id)) continue;
    const { kind, requirements, pinned, name, ...snapshot } = record;
    const state = { kind, members: [], requirements: requirements ?? {} };
    await library.save({ ...snapshot, name: null }, async () => ({ state }), { replaceName: false });
    const named = name === null ? {} : { name };
    await library.amend(record.id, { ...named, ...(pinned === undefined ? {} : { pinned }) });
  }
}
