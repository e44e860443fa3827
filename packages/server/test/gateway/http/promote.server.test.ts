import type { CreatedSandboxRecord, ResponseOf, Routes, SandboxRecord } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { count, SnapshotClient, startCounter } from "./snapshot-client.ts";

type Promoted = ResponseOf<Routes["promoteSandbox"]>;

const KEEPS = { snapshot: "filesystem", filesystemSnapshot: true, outlivesServer: true } as const;

/** A sandbox whose file says `old`, and forks of it whose files say their number. */
async function contest(server: TestServer, forks = 2, body: object = {}) {
  const api = new SnapshotClient(server);
  const made = await api.http.create({ name: "work", key: "my-work", labels: { a: "1" }, ...body });
  const original = api.sandbox(made.id);
  await original.exec({ shell: "echo old > file" });
  const fork = await api.call<{ items: CreatedSandboxRecord[] }>("POST", `/v1/sandboxes/${made.id}/fork`, {
    count: forks,
    name: "fix",
    env: { FIX: "yes" },
  });
  expect(fork.status).toBe(201);
  const boxes = fork.body.items.map(({ id }) => api.sandbox(id));
  for (const [index, box] of boxes.entries()) await box.exec({ shell: `echo ${index + 1} > file` });
  const [winner, loser] = boxes;
  if (winner === undefined) throw new Error("There is no fork.");
  const promote = (body: object = {}, headers = {}) =>
    original.call<Promoted>("POST", "/promote", { winner: winner.id, ...body }, headers);
  return { api, made, original, winner, loser, promote };
}

async function fileOf(box: SandboxClient): Promise<string> {
  return (await box.exec({ shell: "cat file" })).stdout.trim();
}

describe("a promotion", () => {
  test("gives the original the winner's files, memory and processes, and keeps its identity", async () => {
    const server = await startTestServer();
    const { api, made, original, winner, loser, promote } = await contest(server);
    const counter = await startCounter(winner);
    await count(winner, counter);
    await original.call("PATCH", "", { public_ports: [8080], network: { allow: ["example.com"] } });
    const before = await api.http.get(made.id);

    const { status, body } = await promote();
    expect([status, body.winner, body.deleted, body.kept]).toEqual([200, winner.id, [winner.id], []]);
    const { id, name, key, labels, created_at, spec_hash, public_ports, network, expires_at, idle_timeout } = before;
    const kept = { id, name, key, labels, created_at, spec_hash, public_ports, network, expires_at, idle_timeout };
    expect(body.sandbox).toMatchObject({ ...kept, state: "running", epoch: (before.epoch ?? 0) + 1 });
    expect(await fileOf(original)).toBe("1");
    expect(await count(original, counter)).toBe(2);
    expect((await original.exec({ shell: "echo $FIX" })).stdout).toBe("yes\n");
    expect(await server.attach(made.id, `?sandbox_token=${made.token}`).outcome()).toEqual(["RUNNING"]);

    expect((await api.http.get(winner.id)).state).toBe("destroyed");
    expect(await fileOf(loser ?? winner)).toBe("2");
    expect(server.backend.runningCount).toBe(2);
    const former = await api.get(body.former_snapshot_id);
    expect(former).toMatchObject({ sandbox_id: made.id, reason: "promote", state: "ready" });
    expect(await fileOf(api.sandbox((await api.restore(former.id)).id))).toBe("old");
    // Clients that know the original at its earlier epoch are refused.
    const stale = { "if-sandbox-epoch": String(made.epoch) };
    expect((await original.call("POST", "/exec", { shell: "true" }, stale)).status).toBe(412);
    const acquired = await api.call<SandboxRecord & { tier: string }>("POST", "/v1/sandboxes/acquire", {
      key: "my-work",
      name: "work",
      labels: { a: "1" },
    });
    expect(acquired.body).toMatchObject({ id: made.id, tier: "reattached" });
  });

  test("deletes the other forks when that is requested, and nothing else", async () => {
    const server = await startTestServer();
    const { api, made, winner, loser, promote } = await contest(server, 3);
    const snapshot = await api.take(made.id);
    const restored = await api.restore(snapshot.id);
    const { body } = await promote({ discard_others: true });
    expect(body.deleted).toHaveLength(3);
    expect(body.deleted[0]).toBe(winner.id);
    expect(body.deleted).toContain(loser?.id);
    expect((await api.http.get(restored.id)).state).toBe("running");
    expect((await api.http.get(made.id)).state).toBe("running");
    expect(server.backend.runningCount).toBe(2);
  });

  test("survives a save and a restart of the result", async () => {
    const server = await startTestServer();
    const { original, promote } = await contest(server);
    await promote();
    expect((await original.call("POST", "/checkpoint")).status).toBe(200);
    expect((await original.call("POST", "/resume")).status).toBe(200);
    expect(await fileOf(original)).toBe("1");
  });

  test("of a fork of a fork, and into a paused original, works too", async () => {
    const server = await startTestServer();
    const { api, original, winner } = await contest(server);
    const { body } = await winner.call<{ items: CreatedSandboxRecord[] }>("POST", "/fork", {});
    const grandchild = api.sandbox(body.items[0]?.id ?? "");
    await grandchild.exec({ shell: "echo grandchild > file" });
    await original.call("POST", "/checkpoint");
    await grandchild.call("POST", "/checkpoint");
    const promoted = await original.call<Promoted>("POST", "/promote", { winner: grandchild.id });
    expect(promoted.body).toMatchObject({ sandbox: { state: "running" }, deleted: [grandchild.id] });
    expect(await fileOf(original)).toBe("grandchild");
    expect((await api.http.get(winner.id)).state).toBe("running");
  });

  test("informs the client of the original, which keeps its socket", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create({ enable_checkpoint: true });
    const api = new SnapshotClient(server);
    const { body } = await api.call<{ items: CreatedSandboxRecord[] }>("POST", `/v1/sandboxes/${id}/fork`, {});
    const winner = api.sandbox(body.items[0]?.id ?? "");
    await winner.exec({ shell: "echo new > file" });
    await api.call("POST", `/v1/sandboxes/${id}/promote`, { winner: winner.id });
    expect(await client.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
    expect(await client.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:new\n");
    expect(await client.send({ action: "checkpoint" }).untilClosed()).toContain("CHECKPOINTED");
  });
});

describe("a promotion is refused", () => {
  test("of a sandbox that does not come from the original is refused, with its actual origin", async () => {
    const server = await startTestServer();
    const { api, made, winner } = await contest(server);
    const stranger = await SandboxClient.create(server);
    const into = (id: string, other: string) => api.call("POST", `/v1/sandboxes/${id}/promote`, { winner: other });
    expect((await into(made.id, stranger.id)).body.error).toMatchObject({
      code: "bad_request",
      message: expect.stringContaining("was not forked or restored from") as string,
    });
    expect((await into(stranger.id, winner.id)).body.error.hint).toBe(`Promote it into ${made.id}.`);
    expect((await into(winner.id, made.id)).body.error.code).toBe("bad_request");
    expect((await into(made.id, made.id)).body.error.code).toBe("bad_request");
    expect((await into(made.id, "unknown")).body.error.code).toBe("sandbox_not_found");
    expect((await into("unknown", winner.id)).body.error.code).toBe("sandbox_not_found");
    expect(server.backend.runningCount).toBe(4);
  });

  test("when the original was deleted; the fork stays", async () => {
    const server = await startTestServer();
    const { api, original, winner, promote } = await contest(server);
    await original.call("DELETE", "");
    const { status, body } = await promote();
    expect([status, body]).toMatchObject([410, { error: { code: "sandbox_destroyed" } }]);
    expect((await api.http.get(winner.id)).state).toBe("running");
  });

  test("for the second of two at once: one wins, and the other's fork stays", async () => {
    const server = await startTestServer();
    const { api, original, winner, loser, promote } = await contest(server);
    const second = original.call<Promoted>("POST", "/promote", { winner: loser?.id });
    const answers = await Promise.all([promote(), second]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    const refused = answers.find(({ status }) => status === 409)?.body;
    expect(refused).toMatchObject({
      error: { code: "wrong_state", message: expect.stringContaining("Another") as string },
    });
    const states = await Promise.all([winner, loser ?? winner].map(async ({ id }) => (await api.http.get(id)).state));
    expect(states.toSorted()).toEqual(["destroyed", "running"]);
    expect(await fileOf(original)).toBe(states[0] === "destroyed" ? "1" : "2");
  });

  test("with an epoch that is not the original's", async () => {
    const { winner, promote, api } = await contest(await startTestServer());
    expect((await promote({}, { "if-sandbox-epoch": "7" })).status).toBe(412);
    expect((await api.http.get(winner.id)).state).toBe("running");
  });

  test("where the backend's snapshots cannot be loaded", async () => {
    const backend = new FakeBackend({ capabilities: { ...KEEPS, snapshot: "metadata" } });
    const api = new SnapshotClient(await startTestServer({ backend }));
    const original = await SandboxClient.create(api.server);
    const fork = await original.call<{ items: CreatedSandboxRecord[] }>("POST", "/fork", {});
    const winner = fork.body.items[0]?.id ?? "";
    const refused = await api.refused("POST", `/v1/sandboxes/${original.id}/promote`, { winner });
    expect(refused).toEqual([422, "not_supported"]);
  });
});

describe("a promotion that fails before its commit changes nothing", () => {
  test.each([
    ["the copy cannot be started", "backend"],
    ["the head cannot be written", "store"],
  ])("when %s", async (_, where) => {
    const server = await startTestServer();
    const { api, made, original, winner, promote } = await contest(server);
    const error = new SandboxerError("no_space", "The disk is full.");
    const { ownership } = server.durable;
    const write = ownership.replaceState.bind(ownership);
    if (where === "backend") server.backend.faults.set("acquireFromSnapshot", { error, times: 1 });
    else ownership.replaceState = async () => Promise.reject(error);
    expect((await promote()).body).toMatchObject({ error: { code: "no_space" } });
    expect([await fileOf(original), await fileOf(winner)]).toEqual(["old", "1"]);
    expect(server.backend.runningCount).toBe(3);
    // The winner's own snapshot is not needed; the original's stays until retention.
    expect((await api.list()).items.filter(({ sandbox_id: of }) => of === winner.id)).toEqual([]);
    ownership.replaceState = write;
    expect((await promote()).status).toBe(200);
    expect(await fileOf(original)).toBe("1");
    expect((await api.http.get(made.id)).epoch).toBe((made.epoch ?? 0) + 1);
  });
});

test("a sandbox that its provider keeps is promoted into with a new copy", async () => {
  const server = await startTestServer({ backend: new FakeBackend({ capabilities: KEEPS }) });
  const { made, original, winner, promote } = await contest(server);
  const { body } = await promote({ discard_others: true });
  expect(body.deleted).toHaveLength(2);
  expect(await server.durable.ownership.read(made.id)).toMatchObject({
    copy: 1,
    spare_copy: null,
    promotion: { sandbox_id: winner.id, ends: [] },
  });
  expect([await fileOf(original), server.backend.runningCount]).toEqual(["1", 1]);
});

test("a sandbox that is not saved to the store is promoted into as well", async () => {
  const server = await startTestServer();
  const { original, promote } = await contest(server, 1, { enable_checkpoint: false, enable_sandbox_handoff: false });
  expect((await promote()).status).toBe(200);
  expect(await fileOf(original)).toBe("1");
  expect((await original.call<SandboxRecord>("GET", "")).body.checkpoint).toBeNull();
});

test("a winner on another server is handed off to the original's server first", async () => {
  const server = await startTestServer();
  const other = await startTestServer({ store: server.storeFolder ?? null });
  const { original, winner, promote } = await contest(server);
  const there = new SandboxClient(other, winner.id);
  expect((await there.call("POST", "/resume")).status).toBe(200);
  await there.exec({ shell: "echo moved > file" });
  const { status, body } = await promote();
  expect([status, body.deleted]).toEqual([200, [winner.id]]);
  expect(await fileOf(original)).toBe("moved");
  expect(other.backend.runningCount).toBe(0);
  // The other server does not own the original, and says who does.
  const elsewhere = await new SandboxClient(other, original.id).call(
    "POST",
    "/promote",
    { winner: winner.id },
    { "sandboxer-relay": "never" },
  );
  expect([elsewhere.status, elsewhere.body.error.code]).toEqual([409, "lease_held"]);
});

describe("a server that dies after the commit", () => {
  /** The server does nothing more once the head of the original is written. */
  async function committed(body: object = {}) {
    const server = await startTestServer();
    const { api: _, ...all } = await contest(server);
    const { ownership } = server.durable;
    const write = ownership.replaceState.bind(ownership);
    const reached = Promise.withResolvers<void>();
    const death = Promise.withResolvers<never>();
    // Before the server is stopped, which waits for the promotion.
    onTestFinished(() => death.reject(new Error("The server was killed.")));
    ownership.replaceState = async (...parameters) => {
      await write(...parameters);
      reached.resolve();
      return await death.promise;
    };
    void all.promote(body).catch(() => {});
    await reached.promise;
    const next = await startTestServer({ store: server.storeFolder ?? null });
    await next.instances.markDead(server.instances.instanceId);
    return { ...all, next, api: new SnapshotClient(next) };
  }

  test("leaves a promoted original; the next owner deletes the ended forks", async () => {
    const { made, winner, loser, next, api } = await committed({ discard_others: true });
    const there = api.sandbox(made.id);
    expect((await there.call("POST", "/resume")).status).toBe(200);
    expect(await fileOf(there)).toBe("1");
    await eventually("the forks are deleted", async () => {
      const states = await Promise.all([winner.id, loser?.id ?? ""].map(async (id) => (await api.http.get(id)).state));
      return states.every((state) => state === "destroyed");
    });
    await eventually("the promotion is finished", async () => {
      return (await next.durable.ownership.read(made.id))?.promotion?.ends.length === 0;
    });
  });

  test("keeps a winner that is used again, and promotes it again on request", async () => {
    const { made, winner, api } = await committed();
    const used = api.sandbox(winner.id);
    expect((await used.call("POST", "/resume")).status).toBe(200);
    await used.exec({ shell: "echo later > file" });
    const there = api.sandbox(made.id);
    expect((await there.call("POST", "/resume")).status).toBe(200);
    expect(await fileOf(there)).toBe("1");
    expect(await fileOf(used)).toBe("later");
    expect((await there.call("POST", "/promote", { winner: winner.id })).status).toBe(200);
    expect(await fileOf(there)).toBe("later");
  });

  test("lets the same request finish its work", async () => {
    const { made, winner, api } = await committed();
    const answer = await api.call<Promoted>("POST", `/v1/sandboxes/${made.id}/promote`, { winner: winner.id });
    expect([answer.status, answer.body.winner]).toEqual([200, winner.id]);
    await eventually("the winner is deleted", async () => (await api.http.get(winner.id)).state === "destroyed");
    const again = await api.call<Promoted>("POST", `/v1/sandboxes/${made.id}/promote`, { winner: winner.id });
    expect([again.status, again.body.sandbox.epoch]).toEqual([200, answer.body.sandbox.epoch]);
    expect(await fileOf(api.sandbox(made.id))).toBe("1");
  });
});
