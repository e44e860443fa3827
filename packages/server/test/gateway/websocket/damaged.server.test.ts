import { readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };

/** A sandbox with two checkpoints, newest last. */
async function twoCheckpoints(server: TestServer): Promise<{ id: string; names: string[]; folder: string }> {
  const { client, id } = await server.create(DURABLE);
  await client.run("bash", "echo older > file").until("EXECUTION_DONE");
  await client.send({ action: "checkpoint" }).untilClosed();
  const again = server.attach(id);
  await again.until("RUNNING");
  await again.run("bash", "echo newer > file").until("EXECUTION_DONE");
  await again.send({ action: "checkpoint" }).untilClosed();
  const names = ((await server.durable.checkpoints.list(id)) ?? []).map(({ name }) => name).toReversed();
  return { id, names, folder: join(server.storeFolder ?? "", id, "checkpoints") };
}

test.each<[string, (path: string) => Promise<unknown>]>([
  ["a flipped byte at the beginning", (path) => flip(path, 0.01)],
  ["a flipped byte in the middle", (path) => flip(path, 0.5)],
  ["a flipped byte near the end", (path) => flip(path, 0.99)],
  ["cut in half", async (path) => truncate(path, (await readFile(path)).length >> 1)],
  ["empty", (path) => writeFile(path, "")],
  ["missing", (path) => rm(path)],
  ["another file", (path) => writeFile(path, "this is no image")],
])("the newest image is damaged (%s): named, and an older one works", async (_what, damage) => {
  const server = await startTestServer();
  const { id, names, folder } = await twoCheckpoints(server);
  const [older = "", newest = ""] = names;
  await damage(join(folder, newest));
  const client = server.attach(id);
  expect(await client.untilClosed()).toEqual(["RESTORING", "RESTORE_ERROR", expect.stringContaining(newest), 4000]);
  expect(await client.event("error")).toMatchObject({ code: "image_damaged" });
  expect(server.backend.runningCount).toBe(0);
  const back = server.attach(id, `?checkpoint=${older}`);
  expect(await back.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
  expect(await back.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:older\n");
  expect(await back.send({ action: "checkpoint" }).untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
  const forward = server.attach(id);
  expect(await forward.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
  expect(await forward.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:older\n");
});

test("an engine of another version", async () => {
  const store = await temporaryFolder();
  const server = await startTestServer({ store });
  const { id, names } = await twoCheckpoints(server);
  const foreign = await startTestServer({ store, backend: new FakeBackend({ engineVersion: "2" }) });
  const client = foreign.attach(id);
  expect(await client.untilClosed()).toEqual([
    "RESTORING",
    "RESTORE_ERROR",
    expect.stringContaining(names[1] ?? "?"),
    4000,
  ]);
  expect(await client.event("error")).toMatchObject({
    code: "image_incompatible",
    message: expect.stringContaining("saved by version 1 of the engine"),
  });
  expect(await server.attach(id).until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
});

test.each(["checkpoint_1.img", "latest", "../../etc/passwd", "..%2F..%2Fetc", "checkpoint_1.img%00", ""])(
  "?checkpoint=%s names none",
  async (name) => {
    const server = await startTestServer();
    const { id } = await twoCheckpoints(server);
    const client = server.attach(id, `?checkpoint=${name}`);
    expect(await client.untilClosed()).toEqual(["RESTORING", "RESTORE_ERROR", expect.stringMatching(/^error:./), 4000]);
    expect(await server.attach(id).until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
  },
);

test("a backend that fails to load releases the sandbox again", async () => {
  const store = await temporaryFolder();
  const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
  const { id } = await twoCheckpoints(first);
  const { SandboxerError } = await import("@sandboxer/protocol");
  first.backend.faults.set("acquireFromSnapshot", {
    error: new SandboxerError("backend_unavailable", "not now"),
    times: 1,
  });
  expect(await first.attach(id).untilClosed()).toEqual([
    "RESTORING",
    "RESTORE_ERROR",
    expect.stringContaining("not now"),
    4000,
  ]);
  expect(await second.attach(id).until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
});

async function flip(path: string, part: number): Promise<void> {
  const bytes = await readFile(path);
  const at = Math.floor((bytes.length - 1) * part);
  bytes[at] = (bytes[at] ?? 0) ^ 0x10;
  await writeFile(path, bytes);
}
