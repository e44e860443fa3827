import { closeSync, fstatSync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { isErrno, type Head } from "@sandboxer/protocol";
import { expect, onTestFinished, type TestContext } from "vitest";
import { smallVolume } from "../../../../../../test/kit/small-volume.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import { CrashServer } from "./crash-server.ts";
import { DURABLE } from "./pair.ts";
import { contentOf, save, write } from "./survivor.ts";

export const PLACES = ["the server keeps its files", "the store is"] as const;
type Place = (typeof PLACES)[number];
type Backend = "fake" | "gvisor";
type Skip = TestContext["skip"];

/** Enough for a server and its sandbox. */
const VOLUME_BYTES: Readonly<Record<Backend, number>> = { fake: 16 * 1024 * 1024, gvisor: 256 * 1024 * 1024 };
/** A save begins, and comes to the end of the disk on its way. */
const LEFT_FOR_SAVE_BYTES: Readonly<Record<Backend, number>> = { fake: 0, gvisor: 64 * 1024 };
/** Longer than a test takes: a server that cannot renew its record in a full store would freeze its sandboxes. */
const LEASE_TTL = "10m";

/**
 * The disk is full while a sandbox is saved, and again while it is restored: each time the client gets an error,
 * earlier saves stay unchanged, and everything works once there is room.
 */
export async function expectFullDiskSurvived(place: Place, backend: Backend, skip: Skip): Promise<void> {
  const { volume, store, dataDirectory } = await smallPlace(place, backend, skip);
  const server = await CrashServer.start({ store, dataDirectory, backend, leaseTtl: LEASE_TTL });
  const headOf = async (id: string): Promise<Head> =>
    JSON.parse(await readFile(join(store, id, "metadata.json"), "utf8")) as Head;

  const { client: first, id } = await server.create(DURABLE);
  await write(first, "old");
  await save(first);
  const client = server.attach(id);
  await client.until("RUNNING");
  await write(client, "new");
  const before = await headOf(id);

  const emptied = fill(volume.folder, LEFT_FOR_SAVE_BYTES[backend]);
  expect(await client.send({ action: "checkpoint" }).untilClosed()).toEqual([
    "CHECKPOINTING",
    "CHECKPOINT_ERROR",
    expect.stringMatching(/no space left/i),
    4000,
  ]);
  expect(await client.event("error")).toMatchObject({ code: "no_space" });
  const alive = server.attach(id);
  expect(await alive.until("RUNNING")).toEqual(["RUNNING"]);
  expect(await contentOf(alive)).toBe("new");
  expect(await headOf(id)).toEqual(before);
  const images = await readdir(join(store, id, "checkpoints"));
  expect(images.filter((name) => name.endsWith(".img"))).toEqual([before.checkpoint?.name]);
  emptied();
  await save(alive);

  // From the copy that lies here it would be restored without any room.
  await rm(join(dataDirectory, "cache"), { recursive: true, force: true });
  const emptiedAgain = fill(volume.folder, 0);
  const refused = server.attach(id);
  const said = await refused.untilClosed();
  expect([said[0], ...said.slice(-3)]).toEqual([
    "RESTORING",
    "RESTORE_ERROR",
    expect.stringMatching(/no space left/i),
    4000,
  ]);
  expect(await refused.event("error")).toMatchObject({ code: "no_space" });
  emptiedAgain();
  const back = server.attach(id);
  await back.until("RUNNING");
  expect(await contentOf(back)).toBe("new");
}

/** The disk is full when the server is asked to end: it keeps the sandbox until there is room, and loses nothing. */
export async function expectFullDiskDrained(place: Place, backend: Backend, skip: Skip): Promise<void> {
  const { volume, store, dataDirectory } = await smallPlace(place, backend, skip);
  const start = (): Promise<CrashServer> => CrashServer.start({ store, dataDirectory, backend, leaseTtl: LEASE_TTL });
  const server = await start();
  const { client, id } = await server.create(DURABLE);
  await write(client, "new");
  const emptied = fill(volume.folder, LEFT_FOR_SAVE_BYTES[backend]);
  const stopped = server.stop();
  await expect.poll(() => server.log).toContain("sandboxes are kept");
  expect(client.closeCode).toBeUndefined();
  emptied();
  expect(await stopped).toBe(0);
  expect(client.closeCode).toBe(1012);
  const back = (await start()).attach(id);
  await back.until("RUNNING");
  expect(await contentOf(back)).toBe("new");
}

/** A small disk in one of the places of a server. */
async function smallPlace(place: Place, backend: Backend, skip: Skip) {
  const volume = smallVolume(VOLUME_BYTES[backend]);
  if ("skipped" in volume) {
    console.log(`skipped: ${volume.skipped}`);
    return skip(volume.skipped);
  }
  onTestFinished(volume.remove);
  const other = await temporaryFolder();
  const [store, dataDirectory] = place === "the store is" ? [volume.folder, other] : [other, volume.folder];
  return { volume, store, dataDirectory };
}

/** Takes what room there is but for some; gives it back when called. */
function fill(folder: string, leftBytes: number): () => void {
  const path = join(folder, "filler");
  const file = openSync(path, "w");
  try {
    for (let pieceBytes = 1024 * 1024; pieceBytes >= 1; pieceBytes >>= 1) {
      while (writesAll(file, Buffer.alloc(pieceBytes, 1)));
    }
    ftruncateSync(file, fstatSync(file).size - leftBytes);
  } finally {
    closeSync(file);
  }
  return () => rmSync(path);
}

function writesAll(file: number, bytes: Buffer): boolean {
  try {
    return writeSync(file, bytes) === bytes.byteLength;
  } catch (error) {
    if (isErrno(error) && error.code === "ENOSPC") return false;
    throw error;
  }
}
