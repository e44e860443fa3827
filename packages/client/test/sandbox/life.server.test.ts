import { describe, expect, test } from "vitest";
import { Sandbox, type OperationRecord } from "../../src/index.ts";
import { sandbox, server } from "../support/server.ts";

describe("creating and finding", () => {
  test("sandboxes are created, attached, listed and deleted", async () => {
    const { client } = await server();
    const box = await Sandbox.create({ client, name: "mine", labels: { team_name: "ml" }, idleTimeout: "15m" });
    expect(box.record).toMatchObject({ name: "mine", state: "running", labels: { team_name: "ml" }, idleTimeout: 900 });
    expect(box.record).not.toHaveProperty("token");
    expect(box.token).toMatch(/^[0-9a-f]{32,}$/);
    expect((await Sandbox.attach(box.id, { client })).record.id).toBe(box.id);
    await Sandbox.create({ client });
    const named = await Array.fromAsync(Sandbox.list({ label: "team_name=ml" }, { client }));
    expect(named.map(({ id }) => id)).toEqual([box.id]);
    expect(await Array.fromAsync(Sandbox.list({ limit: 1 }, { client }))).toHaveLength(2);
    await box.destroy();
    await expect(Sandbox.attach("00000000-0000-4000-8000-000000000000", { client })).rejects.toMatchObject({
      code: "sandbox_not_found",
    });
    expect(await Array.fromAsync(Sandbox.list({ name: "mine", state: "running" }, { client }))).toEqual([]);
  });

  test("a create that is repeated with its key creates one sandbox", async () => {
    const { client } = await server();
    const [one, two] = await Promise.all([
      Sandbox.create({ client, idempotencyKey: "k" }),
      Sandbox.create({ client, idempotencyKey: "k" }),
    ]);
    expect(one.id).toBe(two.id);
  });

  test("acquire finds the sandbox of a key again", async () => {
    const { client } = await server();
    const first = await Sandbox.acquire({ key: "conversation 7", client, labels: { a: "b" } });
    expect(first).toMatchObject({ tier: expect.any(String), token: expect.any(String) });
    await first.exec("echo kept > file");
    await first.checkpoint();
    const again = await Sandbox.acquire({ key: "conversation 7", client, labels: { a: "b" } });
    expect(again).toMatchObject({ id: first.id, token: undefined });
    expect(again.tier).not.toBe(first.tier);
    expect(await again.exec("cat file")).toMatchObject({ stdout: "kept\n" });
  });

  test("await using deletes at the end of the scope, or saves with keep", async () => {
    const { client } = await server();
    const ids: string[] = [];
    {
      await using gone = await Sandbox.create({ client });
      await using kept = await Sandbox.create({ client, keep: true });
      await kept.exec("echo kept > file");
      ids.push(gone.id, kept.id);
    }
    expect(
      await Sandbox.attach(ids[0] ?? "", { client }).then(
        ({ record }) => record.state,
        ({ code }) => code,
      ),
    ).toMatch(/destroyed|not_found/);
    const kept = await Sandbox.attach(ids[1] ?? "", { client });
    expect(kept.record.state).toBe("stored");
    expect(await kept.exec("cat file")).toMatchObject({ stdout: "kept\n" });
  });
});

describe("pausing and resuming", () => {
  test("checkpoint and resume report their progress", async () => {
    const box = await sandbox();
    const seen: OperationRecord[] = [];
    const stored = await box.checkpoint({ onProgress: (operation) => seen.push(operation) });
    expect(stored).toMatchObject({ id: box.id, state: "stored" });
    expect(seen.at(-1)).toMatchObject({ kind: "checkpoint", state: "done", sandboxId: box.id });
    expect(await box.resume()).toMatchObject({ state: "running" });
  });

  test("a checkpoint can leave the sandbox running", async () => {
    const box = await sandbox();
    const saved = await box.checkpoint({ leaveRunning: true });
    expect(saved).toMatchObject({ state: "running", epoch: 1, durability: { maxLoss: null, atRisk: null } });
    expect(saved.durability.lastSavedAt).toBe(saved.checkpoint?.createdAt);
    expect(await box.update({ maxLoss: "5m" })).toMatchObject({ durability: { maxLoss: "5m" } });
  });

  test("a stale epoch is refused", async () => {
    const box = await sandbox();
    const { epoch } = box.record;
    await box.checkpoint();
    await box.resume();
    await expect(box.checkpoint({ epoch: epoch ?? 1 })).rejects.toMatchObject({ code: "stale_epoch" });
    await box.checkpoint({ epoch: (await box.refresh()).epoch ?? 1 });
  });

  test("a sandbox is handed off to another server, and on from there", async () => {
    const from = await server();
    const to = await server({ store: from.store });
    const box = await Sandbox.create({ client: from.client });
    await box.exec("echo moved > file");
    expect(await box.handoff(to.url)).toMatchObject({ to: to.url, sandbox: { state: "running" } });
    expect(await box.exec("cat file")).toMatchObject({ stdout: "moved\n" });
    expect((await to.client.info()).sandboxes).toBe(1);
    expect((await from.client.info()).sandboxes).toBe(0);
  });

  test("without autoResume a paused sandbox stays paused", async () => {
    const { client } = await server();
    const box = await Sandbox.create({ client, autoResume: false });
    await box.checkpoint();
    await expect(box.exec("true")).rejects.toMatchObject({ code: "wrong_state", details: { state: "stored" } });
    expect((await box.refresh()).state).toBe("stored");
  });
});

describe("snapshots", () => {
  test("snapshots are taken, restored, listed, shown, renamed and deleted", async () => {
    const { client } = await server();
    const box = await Sandbox.create({ client });
    await box.exec("echo one > file");
    const snapshot = await box.snapshot({ name: "first", labels: { a_b: "c" } });
    expect(snapshot).toMatchObject({ name: "first", sandboxId: box.id, state: "ready", labels: { a_b: "c" } });
    await box.exec("echo two > file");
    const restored = await Sandbox.restore("first", { client, name: "copy" });
    expect(restored.id).not.toBe(box.id);
    expect(await restored.exec("cat file")).toMatchObject({ stdout: "one\n" });
    expect((await Array.fromAsync(box.snapshots())).map(({ id }) => id)).toEqual([snapshot.id]);
    expect(await client.snapshots.get(snapshot.id, { verify: true })).toMatchObject({ state: "ready" });
    expect(await client.snapshots.update(snapshot.id, { name: "renamed" })).toMatchObject({ name: "renamed" });
    expect(snapshot.proven).toBeNull();
    const proven = await client.snapshots.prove(snapshot.id);
    expect(proven).toMatchObject({ proven: { engine: expect.stringMatching(/^fake /) as string }, unproven: null });
    await box.checkpoint({ leaveRunning: true });
    expect(await box.prove()).toMatchObject({ sandboxId: box.id, proven: { engine: expect.any(String) as string } });
    await restored.destroy();
    await client.snapshots.delete(snapshot.id);
    await expect(client.snapshots.get(snapshot.id)).rejects.toMatchObject({ code: "snapshot_not_found" });
  });

  test("fork, rewind and diff work", async () => {
    const box = await sandbox();
    await box.exec("echo one > file");
    const snapshot = await box.snapshot();
    await box.exec("echo two > file; echo new > other");
    const diff = await box.diff(snapshot.id);
    expect(diff.changes.map(({ path, change }) => [path, change])).toEqual(
      expect.arrayContaining([
        [expect.stringMatching(/file$/), "changed"],
        [expect.stringMatching(/other$/), "added"],
      ]),
    );
    const forks = await box.fork({ count: 2, labels: { part: "fork" } });
    expect(forks).toHaveLength(2);
    for (const fork of forks) expect(await fork.exec("cat file")).toMatchObject({ stdout: "two\n" });
    await box.rewind(snapshot.id);
    expect(await box.exec("cat file")).toMatchObject({ stdout: "one\n" });
  });
});

describe("reading", () => {
  test("stats, reachability, lifetime and settings are read and changed", async () => {
    const box = await sandbox();
    expect(await box.stats()).toMatchObject({ memoryBytes: expect.any(Number) });
    expect(await box.reachability()).toMatchObject({ reachable: true, state: "running" });
    const { expiresAt } = await box.extendTtl("1h");
    expect(Date.parse(expiresAt ?? "")).toBeGreaterThan(Date.now());
    expect(await box.update({ name: "new", labels: { x: "y" } })).toMatchObject({ name: "new", labels: { x: "y" } });
    expect(box.record.name).toBe("new");
  });

  test("server, backends, instances, profiles, operations and expired sandboxes are listed", async () => {
    const { client } = await server();
    const box = await Sandbox.create({ client });
    expect(await client.info()).toMatchObject({ defaultBackend: "fake", sandboxes: 1 });
    expect(await client.backends()).toContainEqual(expect.objectContaining({ name: "fake", ok: true, default: true }));
    expect(await client.instances()).toMatchObject([{ here: true, owns: [box.id] }]);
    expect((await client.profiles()).map(({ name }) => name)).toContain("profile.gvisor-default");
    expect(await client.profile("profile.gvisor-default")).toMatchObject({ name: "profile.gvisor-default" });
    const [operation] = await Array.fromAsync(client.operations({ sandboxId: box.id }));
    expect(operation).toMatchObject({ kind: "create", state: "done" });
    expect(await client.operation(operation?.id ?? "", { waitSeconds: 1 })).toMatchObject({ state: "done" });
    expect(await client.expire()).toMatchObject({ applied: false, items: [] });
  });

  test("events are read from a cursor, and live", async () => {
    const { client } = await server();
    const box = await Sandbox.create({ client });
    const { items } = await client.call("events", { query: { sandbox_id: box.id } });
    expect(items.length).toBeGreaterThan(1);
    const types: string[] = [];
    for await (const { type, sandboxId, cursor } of box.events({ cursor: items[0]?.cursor })) {
      expect(sandboxId).toBe(box.id);
      expect(cursor).not.toBe(items[0]?.cursor);
      types.push(type);
      if (types.length === items.length - 1) void box.checkpoint();
      if (types.length > items.length) break;
    }
    expect(types.slice(0, items.length - 1)).toEqual(items.slice(1).map(({ type }) => type));
  });
});
