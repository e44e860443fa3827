import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Head } from "@sandboxer/protocol";
import { expect } from "vitest";
import type { RawClient } from "../../../../../../test/kit/server/raw-client.ts";
import type { TestServer } from "../../../../../../test/kit/server/test-server.ts";

/** The content of `file` in the sandbox. */
export async function contentOf(client: RawClient): Promise<string> {
  const said = await client.run("bash", "cat file").until("EXECUTION_DONE");
  return said
    .filter((word) => word.startsWith("out:"))
    .join("")
    .slice("out:".length)
    .trim();
}

export async function write(client: RawClient, content: string): Promise<void> {
  await client.run("bash", `echo ${content} > file`).until("EXECUTION_DONE");
}

/** Saves, and returns when that was acknowledged. */
export async function save(client: RawClient): Promise<void> {
  const said = await client.send({ action: "checkpoint" }).untilClosed();
  expect(said.slice(-2)).toEqual(["CHECKPOINTED", 1000]);
}

export async function headOf(server: TestServer, sandboxId: string): Promise<Head> {
  const head = await server.durable.ownership.read(sandboxId);
  if (head === undefined) throw new Error(`The store has no head of ${sandboxId}.`);
  return head;
}

/**
 * One attach at the survivor is enough: it owns the sandbox alone, at the next epoch, with the state that is expected;
 * and the next save rests on that state and puts everything right that the dead server left undone.
 */
export async function expectTakenOver(server: TestServer, sandboxId: string, content: string): Promise<void> {
  const before = await headOf(server, sandboxId);
  const client = server.attach(sandboxId);
  await client.until("RUNNING");
  expect(await contentOf(client)).toBe(content);
  const owned = await headOf(server, sandboxId);
  expect(owned).toMatchObject({ owner: server.instances.instanceId, state: "live", want: null });
  expect(owned.epoch).toBeGreaterThan(before.epoch);
  expect(owned.checkpoint).toEqual(before.checkpoint);
  expect(server.backend.runningCount).toBe(1);

  await write(client, `${content}-and-on`);
  await save(client);
  const saved = await headOf(server, sandboxId);
  expect(saved.checkpoint?.parent).toBe(owned.checkpoint?.name);
  const { durable } = server;
  expect(await durable?.checkpoints.latestName(sandboxId)).toBe(saved.checkpoint?.name);
  const image = await durable?.checkpoints.open(sandboxId, saved.checkpoint?.name ?? "");
  expect(image?.manifestSha256).toBe(saved.checkpoint?.sha256);
  await expectChain(server, sandboxId);

  const again = server.attach(sandboxId);
  await again.until("RUNNING");
  expect(await contentOf(again)).toBe(`${content}-and-on`);
}

/** Each version of the head rests on the one before it, and the epoch never goes back. Buckets keep no old versions. */
async function expectChain(server: TestServer, sandboxId: string): Promise<void> {
  if (server.storeFolder?.includes("://") === true) return;
  const folder = join(server.storeFolder ?? "", sandboxId, ".head");
  const names = (await readdir(folder)).filter((name) => /^v\d+$/.test(name)).toSorted();
  const heads: Head[] = [];
  for (const name of names) {
    // The first line is the store's own; the head is what follows.
    const text = await readFile(join(folder, name), "utf8");
    heads.push(JSON.parse(text.slice(text.indexOf("\n") + 1)) as Head);
  }
  expect(heads.length).toBeGreaterThan(1);
  for (const [index, head] of heads.entries()) {
    const parent = heads[index - 1];
    if (parent === undefined) continue;
    expect(head.history[0]).toBe(parent.nonce);
    expect(head.epoch).toBeGreaterThanOrEqual(parent.epoch);
    if (head.checkpoint?.name !== parent.checkpoint?.name)
      expect(head.checkpoint?.parent).toBe(parent.checkpoint?.name ?? null);
  }
}
