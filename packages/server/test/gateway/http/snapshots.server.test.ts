import { open, readdir, truncate, unlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { count, SnapshotClient, startCounter } from "./snapshot-client.ts";

const ABSENT = "00000000-0000-4000-8000-000000000000";

async function client(options: Parameters<typeof startTestServer>[0] = {}): Promise<SnapshotClient<TestServer>> {
  return new SnapshotClient(await startTestServer(options));
}

describe("capture and restore", () => {
  test("a sandbox keeps running, and a new one continues from where it was captured", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server, { name: "box", labels: { team: "ml" }, env: { A: "1" } });
    const counter = await startCounter(box);
    expect([await count(box, counter), await count(box, counter)]).toEqual([1, 2]);
    const snapshot = await api.take(box.id, { name: "two", labels: { at: "two" } });
    expect(snapshot).toMatchObject({
      name: "two",
      state: "ready",
      mode: "full",
      kind: "fake-state",
      backend: "fake",
      labels: { at: "two" },
      sandbox_id: box.id,
      sandbox_name: "box",
      parent: null,
      children: [],
      sandboxes: [],
      reason: "request",
    });
    expect(await count(box, counter)).toBe(3);

    const restored = await api.restore("two", { name: "copy" });
    expect(restored.id).not.toBe(box.id);
    expect(restored).toMatchObject({
      name: "copy",
      state: "running",
      labels: { team: "ml" },
      origin: { sandbox_id: box.id, snapshot_id: snapshot.id },
      flags: { enable_checkpoint: true },
    });
    expect(await count(api.sandbox(restored.id), counter)).toBe(3);
    expect(await count(box, counter)).toBe(4);
    const attached = api.server.attach(restored.id, "", { headers: { authorization: `Bearer ${restored.token}` } });
    expect(await attached.outcome()).toContain("RUNNING");
    expect((await api.get(snapshot.id)).sandboxes).toEqual([restored.id]);
  });

  test("a capture during an execution of the WebSocket protocol is in the copy, and the original does not notice", async () => {
    const api = await client();
    const { client: socket, id } = await api.server.create({ enable_checkpoint: true });
    await socket.run("bash", "echo begun; read x; echo got $x").until("out:begun\n");
    const snapshot = await api.take(id);
    const restored = await api.restore(snapshot.id);
    const copy = api.server.attach(restored.id).send({ action: "reconnect" });
    await copy.until("EXECUTION_RUNNING");
    copy.send({ event: "stdin", data: "there\n" });
    expect(await copy.until("EXECUTION_DONE")).toContain("out:got there\n");
    expect(await socket.send({ event: "stdin", data: "here\n" }).until("EXECUTION_DONE")).toEqual([
      "out:got here\n",
      "EXECUTION_DONE",
    ]);
  });

  test("in mode filesystem the files are kept and nothing runs", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    await startCounter(box);
    await box.exec({ shell: "echo kept > file" });
    const { id, mode } = await api.take(box.id, { mode: "filesystem" });
    expect(mode).toBe("filesystem");
    const copy = api.sandbox((await api.restore(id)).id);
    expect(await copy.processes()).toEqual([]);
    expect((await copy.exec({ shell: "cat file" })).stdout).toBe("kept\n");
  });

  test("two at once are taken one after the other, and both are complete", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const held = Promise.withResolvers<void>();
    api.server.backend.faults.set("snapshot", { until: held.promise, times: 1 });
    const first = api.take(box.id, { name: "first" });
    const second = api.take(box.id, { name: "second" });
    await expect
      .poll(async () => (await api.call<{ items: unknown[] }>("GET", "/v1/operations?kind=snapshot")).body.items.length)
      .toBe(2);
    held.resolve();
    const [one, two] = [await first, await second];
    expect(one.created_at <= two.created_at).toBe(true);
    expect(await api.get("first", "?verify=true")).toMatchObject({ id: one.id, state: "ready" });
    expect(await api.get("second", "?verify=true")).toMatchObject({ id: two.id, state: "ready" });
  });

  test("after the capture, writing it delays nobody, not even the end of the sandbox", async () => {
    const held = Promise.withResolvers<void>();
    const wrapStore = (store: ObjectStore): ObjectStore =>
      new Proxy(store, {
        get: (target, property) => {
          const value: unknown = Reflect.get(target, property);
          if (property !== "write") return typeof value === "function" ? (value.bind(target) as unknown) : value;
          return async (...given: Parameters<ObjectStore["write"]>) => {
            if (given[0].endsWith("/image.img")) await held.promise;
            return await target.write(...given);
          };
        },
      });
    const api = await client({ wrapStore });
    const { client: socket, id } = await api.server.create({ enable_checkpoint: true });
    const taking = api.take(id, { name: "slow" });
    await expect.poll(async () => (await readdir(join(api.server.storeFolder ?? "", "snapshots"))).length).toBe(1);
    expect(await socket.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
    expect((await api.list()).items).toEqual([]);
    await api.call("DELETE", `/v1/sandboxes/${id}`);
    held.resolve();
    expect((await taking).name).toBe("slow");
    expect((await api.restore("slow")).state).toBe("running");
  });

  test("the sandbox keeps running when its capture fails, and nothing is left of it", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const counter = await startCounter(box);
    api.server.backend.faults.set("snapshot", { damage: "half_written", times: 1 });
    expect(await api.refused("POST", `/v1/sandboxes/${box.id}/snapshot`, { name: "x" })).toEqual([503, "no_space"]);
    expect((await api.list()).items).toEqual([]);
    expect(await count(box, counter)).toBe(1);
  });

  test("a missing snapshot is 404", async () => {
    const api = await client();
    for (const [method, path, body] of [
      ["GET", ""],
      ["DELETE", ""],
      ["PATCH", "", { name: "x" }],
      ["POST", "/restore", {}],
      ["GET", "/diff?to=x"],
    ] as const) {
      expect(await api.refused(method, `/v1/snapshots/${ABSENT}${path}`, body)).toEqual([404, "snapshot_not_found"]);
    }
    expect(await api.refused("POST", `/v1/sandboxes/${ABSENT}/snapshot`, {})).toEqual([404, "sandbox_not_found"]);
  });

  test("a request that the backend cannot fulfil is 422", async () => {
    const backend = new FakeBackend({ capabilities: { snapshot: "filesystem" } });
    const api = await client({ backend });
    const box = await SandboxClient.create(api.server);
    expect(await api.refused("POST", `/v1/sandboxes/${box.id}/snapshot`, { mode: "full" })).toEqual([
      422,
      "not_supported",
    ]);
    expect((await api.take(box.id)).mode).toBe("filesystem");
  });

  test("names and labels change, and a taken name is refused with its holder", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const first = await api.take(box.id, { name: "base" });
    const second = await api.take(box.id);
    const answer = await box.call("POST", "/snapshot", { name: "base" });
    expect([answer.status, answer.body.error.code]).toEqual([409, "name_taken"]);
    expect(answer.body.error.details).toMatchObject({ snapshot_id: first.id });
    expect(await api.refused("PATCH", `/v1/snapshots/${second.id}`, { name: "base" })).toEqual([409, "name_taken"]);
    expect((await api.list()).items).toHaveLength(2);
    await api.call("PATCH", "/v1/snapshots/base", { name: null, labels: { old: "yes" } });
    await api.call("PATCH", `/v1/snapshots/${second.id}`, { name: "base" });
    expect((await api.get("base")).id).toBe(second.id);
    expect(await api.get(first.id)).toMatchObject({ name: null, labels: { old: "yes" } });
  });

  test("a retry with the same Idempotency-Key captures once", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const take = () => box.call<{ id: string }>("POST", "/snapshot", {}, { "idempotency-key": "k" });
    const [one, two] = [await take(), await take()];
    expect(one.body.id).toBe(two.body.id);
    expect((await api.list()).items).toHaveLength(1);
  });
});

describe("lists, lineage and removal", () => {
  test("newest first, in pages, with filters", async () => {
    const api = await client();
    const [box, other] = [await SandboxClient.create(api.server), await SandboxClient.create(api.server)];
    const one = await api.take(box.id, { name: "one", labels: { a: "1" } });
    const two = await api.take(box.id, { mode: "filesystem", labels: { a: "2" } });
    const three = await api.take(other.id, { labels: { a: "1", b: "" } });
    const ids = async (query: string): Promise<string[]> => (await api.list(query)).items.map(({ id }) => id);
    expect(new Set(await ids(""))).toEqual(new Set([one.id, two.id, three.id]));
    const times = (await api.list()).items.map(({ created_at }) => created_at);
    expect(times).toEqual(times.toSorted().toReversed());
    expect(await ids(`?sandbox_id=${other.id}`)).toEqual([three.id]);
    expect(await ids("?mode=filesystem")).toEqual([two.id]);
    expect(await ids("?name=one")).toEqual([one.id]);
    expect(await ids("?label=a=1&label=b")).toEqual([three.id]);
    expect(await ids("?state=damaged")).toEqual([]);
    const page = await api.list("?limit=2");
    const rest = await api.list(`?limit=2&cursor=${page.next_cursor}`);
    expect(rest.next_cursor).toBeNull();
    expect([...page.items, ...rest.items].map(({ id }) => id)).toEqual(await ids(""));
  });

  test("parent and children, along restores", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const root = await api.take(box.id);
    const copy = await api.restore(root.id);
    const child = await api.take(copy.id);
    expect(child).toMatchObject({ parent: root.id, sandbox_id: copy.id });
    expect(await api.get(root.id)).toMatchObject({ parent: null, children: [child.id], sandboxes: [copy.id] });
    await api.call("DELETE", `/v1/sandboxes/${copy.id}`);
    expect(await api.get(root.id)).toMatchObject({ children: [child.id], sandboxes: [] });
    await api.remove(root.id);
    expect(await api.get(child.id)).toMatchObject({ parent: root.id });
  });

  test("a snapshot that a live sandbox was created from stays, and the answer names the sandbox", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id);
    const copy = await api.restore(id, { name: "copy" });
    const answer = await api.call("DELETE", `/v1/snapshots/${id}`);
    expect([answer.status, answer.body.error.code]).toEqual([409, "snapshot_in_use"]);
    expect(answer.body.error.message).toContain("copy (is running here)");
    expect(answer.body.error.details["dependants"]).toMatchObject([{ sandbox_id: copy.id }]);
    expect(await api.get(id)).toMatchObject({ state: "ready" });
    // Saved, it has a state of its own.
    await api.call("POST", `/v1/sandboxes/${copy.id}/checkpoint`);
    await api.remove(id);
    expect((await api.call("POST", `/v1/sandboxes/${copy.id}/resume`)).status).toBe(200);
  });

  test("a removal while a sandbox is created from it is refused, and the sandbox is created", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id);
    const held = Promise.withResolvers<void>();
    api.server.backend.faults.set("acquireFromSnapshot", { until: held.promise, times: 1 });
    const restoring = api.restore(id);
    await expect.poll(async () => (await api.get(id)).sandboxes).toHaveLength(1);
    expect(await api.refused("DELETE", `/v1/snapshots/${id}`)).toEqual([409, "snapshot_in_use"]);
    held.resolve();
    expect((await restoring).state).toBe("running");
  });
});

describe("missing or damaged data", () => {
  test.each([
    ["missing", (path: string) => unlink(path), "missing"],
    ["cut short", (path: string) => truncate(path, 4096), "damaged"],
  ] as const)("%s: a restore says so, and so does the record", async (_, damage, state) => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id);
    await damage(join(api.server.storeFolder ?? "", "snapshots", id, "image.img"));
    const answer = await api.call("POST", `/v1/snapshots/${id}/restore`, {});
    expect([answer.status, answer.body.error.code]).toEqual([422, "image_damaged"]);
    expect(answer.body.error.hint).toContain("another snapshot");
    expect(await api.get(id)).toMatchObject({ state, problem: expect.stringContaining("image.img") });
    expect((await api.list(`?state=${state}`)).items).toHaveLength(1);
    expect(api.server.backend.runningCount).toBe(1);
    await api.remove(id);
  });

  test.each([
    ["missing", (path: string) => unlink(path), "not_supported"],
    ["cut short", (path: string) => truncate(path, 3), "image_damaged"],
  ] as const)("a list of files that is %s stands in the way of a diff, not of a restore", async (_, damage, code) => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    await box.exec({ shell: "echo kept > file" });
    const { id } = await api.take(box.id);
    await damage(join(api.server.storeFolder ?? "", "snapshots", id, "files.ndjson.zst"));
    expect(await api.refused("GET", `/v1/snapshots/${id}/diff?to=${id}`)).toEqual([422, code]);
    const explained = await api.call("GET", `/v1/snapshots/${id}/explain`);
    expect(explained.body).toMatchObject({ loadable: true, files: { scope: "all", count: null, bytes: null } });
    expect((await api.sandbox((await api.restore(id)).id).exec({ shell: "cat file" })).stdout).toBe("kept\n");
    expect(await api.get(id)).toMatchObject({ state: "ready" });
  });

  test("verify finds one flipped byte", async () => {
    const api = await client();
    const box = await SandboxClient.create(api.server);
    const { id } = await api.take(box.id);
    expect(await api.get(id, "?verify=true")).toMatchObject({ state: "ready", problem: null });
    const file = await open(join(api.server.storeFolder ?? "", "snapshots", id, "image.img"), "r+");
    await file.write(Buffer.from([0]), 0, 1, 4096 + 10);
    await file.close();
    expect(await api.get(id)).toMatchObject({ state: "ready" });
    expect(await api.get(id, "?verify=true")).toMatchObject({ state: "damaged" });
  });
});
