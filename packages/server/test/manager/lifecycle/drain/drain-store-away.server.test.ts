import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execRequestSchema } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { startRequest } from "../../../../src/gateway/http/exec-answer.ts";
import type { ObjectStore } from "../../../../src/store/store.ts";
import { contentOf, headOf, write } from "../../../system/crash/support/survivor.ts";
import { HEADER } from "../../../gateway/http/encryption-lab.ts";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import type { RawClient } from "../../../../../../test/kit/server/raw-client.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../../test/kit/server/test-server.ts";
import { absentableStore } from "../../support/absentable-store.ts";

const DURABLE = { enable_checkpoint: true };
const LONG_MS = 60_000;
const SHORT_MS = 200;
const LEASE_TTL_MS = 1_000;

/** A server whose store can be taken away, on a machine that other servers of the test are on too. */
async function machine(options: TestServerOptions = {}) {
  const [dataFolder, store] = [await temporaryFolder(), join(await temporaryFolder(), "store")];
  const way = absentableStore();
  const here = { dataFolder, store, leaseTtlMs: LEASE_TTL_MS };
  const server = await startTestServer({ ...here, wrapStore: way.wrapStore, ...options });
  const next = (): Promise<TestServer> => startTestServer(here);
  return { server, way, next, store, dataFolder };
}

function isHeld(server: TestServer): Promise<void> {
  return eventually("it is waited for the store", () =>
    server.problems.some((each) => each.includes("are kept until")),
  );
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** The records of what lies on the machine and not in the store. */
async function recordsOn(dataFolder: string): Promise<string[]> {
  return (await filesBelow(join(dataFolder, "unpublished"))).filter((path) => path.endsWith("/checkpoint.json"));
}

async function attached(server: TestServer, id: string, options = {}): Promise<RawClient> {
  const client = server.attach(id, "", options);
  expect(await client.outcome()).toEqual(["RESTORING", "RUNNING"]);
  return client;
}

describe("a drain while the store is unreachable", () => {
  test("keeps the sandboxes and saves them when the store is back", async () => {
    const { server, way, next, dataFolder } = await machine({ drainTimeoutMs: LONG_MS });
    const { client, id } = await server.create(DURABLE);
    await write(client, "new");
    way.away = true;
    const drained = server.drain();
    await isHeld(server);
    expect(server.backend.runningCount).toBe(1);
    expect(client.rest()).toEqual(["CHECKPOINTING"]);
    way.away = false;
    expect(await drained).toEqual([]);
    expect(await client.untilClosed()).toEqual(["CHECKPOINTED", 1012]);
    expect(await filesBelow(join(dataFolder, "unpublished"))).toEqual([]);
    const after = await next();
    expect(await headOf(after, id)).toMatchObject({ owner: null, epoch: 1, state: "parked" });
    expect(await contentOf(await attached(after, id))).toBe("new");
  });

  test("saves running executions, and they continue where they were", async () => {
    const { server, way, next } = await machine({ drainTimeoutMs: SHORT_MS });
    const { client, id } = await server.create(DURABLE);
    await client.run("bash", "for i in $(seq 1 60); do echo line $i; sleep 0.02; done").until("out:");
    way.away = true;
    expect(await server.drain()).toHaveLength(1);
    const again = await attached(await next(), id);
    await again.send({ action: "reconnect" }).until("EXECUTION_DONE");
    const lines = Array.from({ length: 60 }, (_, index) => `line ${index + 1}\n`).join("");
    expect(client.output + again.output).toBe(lines);
  });

  test("leaves a complete image on the machine if the store stays unavailable, and the next server publishes it", async () => {
    const { server, way, next, dataFolder } = await machine({ drainTimeoutMs: SHORT_MS });
    const { client, id } = await server.create(DURABLE);
    await write(client, "new");
    const { owner } = await headOf(server, id);
    way.away = true;
    const [unsaved, ...others] = await server.drain();
    expect(others).toEqual([]);
    expect(unsaved).toMatchObject({ sandboxId: id, reason: "the store is away" });
    expect(await client.untilClosed()).toEqual([
      "CHECKPOINTING",
      "CHECKPOINT_ERROR",
      "error:the store is away The sandbox's state is saved on the server's machine.",
      4000,
    ]);
    expect(server.backend.runningCount).toBe(0);
    expect((await stat(join(dataFolder, "unpublished"))).mode & 0o777).toBe(0o700);
    expect(JSON.parse(await readFile(join(unsaved?.folder ?? "", "checkpoint.json"), "utf8"))).toMatchObject({
      format: 1,
      sandbox_id: id,
      owner: { instance_id: owner, epoch: 1 },
      replaces: null,
    });
    const after = await next();
    await eventually("it is published", async () => (await headOf(after, id)).checkpoint !== null);
    await eventually("nothing is left", async () => (await filesBelow(join(dataFolder, "unpublished"))).length === 0);
    expect(await headOf(after, id)).toMatchObject({ owner: null, epoch: 2, state: "parked" });
    expect(await contentOf(await attached(after, id))).toBe("new");
  });

  test("an attach before the publication waits for it", async () => {
    const { server, way, next } = await machine({ drainTimeoutMs: SHORT_MS });
    const { client, id } = await server.create(DURABLE);
    await write(client, "old");
    await client.send({ action: "checkpoint" }).untilClosed();
    const again = await attached(server, id);
    await write(again, "new");
    way.away = true;
    await server.drain();
    const after = await next();
    expect(await contentOf(await attached(after, id))).toBe("new");
  });

  test("another live server of the machine publishes it on demand", async () => {
    const { server, way, next } = await machine({ drainTimeoutMs: SHORT_MS });
    const neighbour = await next();
    const { client, id } = await server.create(DURABLE);
    await write(client, "new");
    way.away = true;
    await server.drain();
    expect(await contentOf(await attached(neighbour, id))).toBe("new");
  });

  test("a sandbox that was destroyed meanwhile leaves nothing on the machine", async () => {
    const { server, way, next, dataFolder } = await machine({ drainTimeoutMs: SHORT_MS });
    const { id } = await server.create(DURABLE);
    way.away = true;
    await server.drain();
    expect(await recordsOn(dataFolder)).toHaveLength(1);
    const elsewhere = await startTestServer({ store: server.storeFolder ?? null });
    await elsewhere.instances?.markDead(server.instances?.instanceId ?? "");
    await elsewhere.manager.destroyById(id, undefined);
    await next();
    await eventually("nothing is left", async () => (await filesBelow(join(dataFolder, "unpublished"))).length === 0);
  });

  test("where the machine has no room either, the copy is held and saved later", async () => {
    const { server, way, next, dataFolder } = await machine({ drainTimeoutMs: LONG_MS });
    await writeFile(join(dataFolder, "unpublished"), "in the way");
    const { client, id } = await server.create(DURABLE);
    await write(client, "new");
    way.away = true;
    const drained = server.drain();
    await isHeld(server);
    way.away = false;
    expect(await drained).toEqual([]);
    expect(await contentOf(await attached(await next(), id))).toBe("new");
  });

  test("a sandbox that can be kept nowhere is reported as lost", async () => {
    const { server, way, dataFolder } = await machine({ drainTimeoutMs: SHORT_MS });
    await writeFile(join(dataFolder, "unpublished"), "in the way");
    const { id } = await server.create(DURABLE);
    way.away = true;
    expect(await server.drain()).toEqual([{ sandboxId: id, reason: "the store is away", folder: undefined }]);
  });

  test("data that is encrypted with its client's key stays encrypted on the machine, and is published without the key", async () => {
    const { server, way, next, dataFolder } = await machine({ drainTimeoutMs: SHORT_MS });
    const { client, id } = await server.create(DURABLE, HEADER);
    const mark = "do-not-show-this-to-anybody";
    await write(client, mark);
    way.away = true;
    await server.drain();
    const files = await filesBelow(join(dataFolder, "unpublished"));
    expect(files.some((file) => file.endsWith(".key"))).toBe(true);
    for (const file of files) expect((await readFile(file)).includes(mark)).toBe(false);
    const after = await next();
    await eventually("it is published", async () => (await headOf(after, id)).checkpoint !== null);
    expect(await contentOf(await attached(after, id, HEADER))).toBe(mark);
    const plain = await Promise.all((await filesBelow(after.storeFolder ?? "")).map((file) => readFile(file)));
    expect(plain.some((bytes) => bytes.includes(mark))).toBe(false);
  });
});

describe("a server that has lost its lease while it waited", () => {
  /** A sandbox with an old state in the store and a new one that runs, at a server that others take for dead. */
  async function overtaken(drainTimeoutMs: number) {
    const first = await machine({ drainTimeoutMs });
    const second = await startTestServer({ store: first.store, leaseTtlMs: LEASE_TTL_MS });
    const { client, id } = await first.server.create(DURABLE);
    await write(client, "old");
    await client.send({ action: "checkpoint" }).untilClosed();
    const again = await attached(first.server, id);
    await write(again, "new");
    const instanceId = first.server.instances?.instanceId ?? "";
    first.way.away = true;
    const drained = first.server.drain();
    await isHeld(first.server);
    await eventually("the other server takes it for dead", () => second.instances.isDead(instanceId));
    return { ...first, second, id, drained };
  }

  test("publishes anyway if nobody has claimed the sandbox", async () => {
    const { way, second, id, drained } = await overtaken(LONG_MS);
    way.away = false;
    expect(await drained).toEqual([]);
    expect(await contentOf(await attached(second, id))).toBe("new");
  });

  test("never publishes over a newer state of another owner", async () => {
    const { server, way, second, id, drained, next, dataFolder } = await overtaken(LONG_MS);
    const client = await attached(second, id);
    expect(await contentOf(client)).toBe("old");
    await write(client, "newer");
    const taken = await headOf(second, id);
    way.away = false;
    expect(await drained).toEqual([
      { sandboxId: id, reason: "Another server owns the sandbox now.", folder: expect.any(String) as string },
    ]);
    expect(server.problems.join("\n")).toContain("is not published: The sandbox was claimed by the server");
    expect(await headOf(second, id)).toEqual(taken);
    // It stays for people to look at, and no server of the machine touches the sandbox because of it.
    await next();
    expect(await recordsOn(dataFolder)).toHaveLength(1);
    await client.send({ action: "checkpoint" }).untilClosed();
    expect(await contentOf(await attached(second, id))).toBe("newer");
  });

  test("the next server on the machine does not publish over it either", async () => {
    const { second, id, drained, next, dataFolder } = await overtaken(LEASE_TTL_MS * 4);
    await drained;
    const client = await attached(second, id);
    await write(client, "newer");
    await client.send({ action: "checkpoint" }).untilClosed();
    const saved = await headOf(second, id);
    const after = await next();
    await eventually("it says so", () => after.problems.some((each) => each.includes("is not published")));
    expect(await headOf(after, id)).toEqual(saved);
    const [record = ""] = await recordsOn(dataFolder);
    expect(JSON.parse(await readFile(record, "utf8"))).toMatchObject({ set_aside: { reason: expect.any(String) } });
    expect(await contentOf(await attached(after, id))).toBe("newer");
  });

  test("checkpoints that were set aside are removed after a week", async () => {
    const { second, id, drained, next, dataFolder } = await overtaken(LEASE_TTL_MS * 4);
    await drained;
    await (await attached(second, id)).send({ action: "checkpoint" }).untilClosed();
    const after = await next();
    await eventually("it says so", () => after.problems.some((each) => each.includes("is not published")));
    await after.drain();
    const [record = ""] = await recordsOn(dataFolder);
    const text = await readFile(record, "utf8");
    const old = new Date(Date.now() - 8 * 86_400_000).toISOString();
    await writeFile(record, text.replace(/"at": "[^"]*"/, `"at": "${old}"`));
    await next();
    await eventually("nothing is left", async () => (await filesBelow(join(dataFolder, "unpublished"))).length === 0);
  });
});

/** A store that stops answering, from a moment that a test chooses. */
function silentStore(): { silent: boolean; wrapStore: (store: ObjectStore) => ObjectStore } {
  const forever = new Promise<never>(() => {});
  const state = {
    silent: false,
    wrapStore: (store: ObjectStore): ObjectStore =>
      new Proxy(store, {
        get: (target, name) => {
          const method = Reflect.get(target, name) as unknown;
          if (typeof method !== "function") return method;
          return (...args: unknown[]) => {
            if (!state.silent) return Reflect.apply(method, target, args) as unknown;
            return name === "list" || name === "read"
              ? { [Symbol.asyncIterator]: () => ({ next: () => forever }) }
              : forever;
          };
        },
      }),
  };
  return state;
}

test("a store that never answers delays neither the end nor the kept state", async () => {
  const way = silentStore();
  const { server, next } = await machine({ drainTimeoutMs: 3_000, wrapStore: way.wrapStore });
  for (let count = 0; count < 40; count++) await server.create();
  const { client, id } = await server.create(DURABLE);
  await write(client, "new");
  way.silent = true;
  expect(await server.drain()).toMatchObject([{ sandboxId: id, folder: expect.any(String) as string }]);
  expect(server.backend.runningCount).toBe(0);
  expect(await contentOf(await attached(await next(), id))).toBe("new");
});

describe("a pause in progress when the drain begins", () => {
  async function pausing(options: TestServerOptions) {
    const way = silentStore();
    const there = await machine({ wrapStore: way.wrapStore, ...options });
    const { client, id } = await there.server.create(DURABLE);
    await write(client, "new");
    way.silent = true;
    await client.send({ action: "checkpoint" }).until("CHECKPOINTING");
    return { ...there, way, client, id };
  }

  test.each([
    ["before the lease ends", { drainTimeoutMs: 300, leaseTtlMs: 5_000 }],
    ["after the server has frozen its sandboxes", { drainTimeoutMs: 3_000 }],
  ])("leaves its state on the machine if the store does not answer, %s", async (_, options) => {
    const { server, next, id } = await pausing(options);
    expect(await server.drain()).toMatchObject([{ sandboxId: id, folder: expect.any(String) as string }]);
    expect(server.backend.runningCount).toBe(0);
    expect(await contentOf(await attached(await next(), id))).toBe("new");
  });
});

describe("a command that waits for its turn does not hold up the drain", () => {
  const COMMAND = startRequest(execRequestSchema.parse({ shell: "echo ran" }), undefined);

  test("behind a pause in progress", async () => {
    const way = silentStore();
    const { server, next } = await machine({ wrapStore: way.wrapStore, drainTimeoutMs: 3_000 });
    const { client, id } = await server.create(DURABLE);
    const sandbox = await server.live(id);
    await write(client, "new");
    way.silent = true;
    await client.send({ action: "checkpoint" }).until("CHECKPOINTING");
    const command = server.manager.processes.start(sandbox, COMMAND);
    const [unsaved] = await Promise.all([
      server.drain(),
      expect(command).rejects.toMatchObject({ code: "wrong_state" }),
    ]);
    expect(unsaved).toMatchObject([{ sandboxId: id, folder: expect.any(String) as string }]);
    expect(await contentOf(await attached(await next(), id))).toBe("new");
  });

  test("in a sandbox that is frozen", async () => {
    const { server, way } = await machine({ drainTimeoutMs: 5_000 });
    const { id } = await server.create(DURABLE);
    const sandbox = await server.live(id);
    const turn = Promise.withResolvers<void>();
    const before = sandbox.queue.run(() => turn.promise);
    const command = server.manager.processes.start(sandbox, COMMAND);
    way.away = true;
    await eventually("it is frozen", () => sandbox.frozenMs !== undefined);
    turn.resolve();
    await before;
    await expect(command).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await server.drain()).toMatchObject([{ sandboxId: id, folder: expect.any(String) as string }]);
  });

  test("for longer than the drain may take, if the sandbox does not answer it", async () => {
    const { server } = await machine({ drainTimeoutMs: SHORT_MS });
    const { id } = await server.create(DURABLE);
    const sandbox = await server.live(id);
    await sandbox.handle.freeze();
    const command = server.manager.processes.start(sandbox, COMMAND);
    const [unsaved] = await Promise.all([server.drain(), expect(command).rejects.toThrow()]);
    const reason = "Work in progress on the sandbox did not end.";
    expect(unsaved).toEqual([{ sandboxId: id, reason, folder: undefined }]);
    expect(server.backend.runningCount).toBe(0);
  });
});

test("a publication whose answer was lost is recognized", async () => {
  let silent = false;
  // The head that gives the sandbox up is written; nothing is heard from then on.
  const wrapStore = (store: ObjectStore): ObjectStore =>
    new Proxy(store, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as unknown;
        if (typeof method !== "function") return method;
        const call = (...args: unknown[]): unknown => Reflect.apply(method, target, args);
        if (name !== "swapCell" && name !== "readCell") return call;
        return async (...args: unknown[]) => {
          const result = await call(...args);
          silent ||= name === "swapCell" && /"state":\s*"parked"/.test(Buffer.from(args[2] as Uint8Array).toString());
          return silent ? await new Promise(() => {}) : result;
        };
      },
    });
  const { server, next, dataFolder } = await machine({ drainTimeoutMs: 2_000, wrapStore });
  const { client, id } = await server.create(DURABLE);
  await write(client, "new");
  expect(await server.drain()).toMatchObject([{ sandboxId: id, reason: "The store does not answer." }]);
  expect(await recordsOn(dataFolder)).toHaveLength(1);
  const after = await next();
  const { checkpoint } = await headOf(after, id);
  await eventually("nothing is left", async () => (await filesBelow(join(dataFolder, "unpublished"))).length === 0);
  expect(await headOf(after, id)).toMatchObject({ epoch: 1, owner: null, checkpoint });
  expect(await contentOf(await attached(after, id))).toBe("new");
});

test("checkpoints that were being written when a server was killed are removed", async () => {
  const { next, dataFolder } = await machine();
  const half = join(dataFolder, "unpublished", "6f1e7c1a-0000-4000-8000-000000000000", crypto.randomUUID(), "store");
  await mkdir(half, { recursive: true });
  await next();
  await eventually("nothing is left", async () => (await readdir(join(dataFolder, "unpublished"))).length === 0);
});
