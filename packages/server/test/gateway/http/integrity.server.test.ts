import { randomBytes } from "node:crypto";
import { copyFile, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IntegrityReport, ScrubStatus } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { newKey, serverKeys } from "../../checkpoints/keys/key-lab.ts";
import {
  start,
  withFile,
  checkpoint,
  putDown,
  scrub,
  told,
  packs,
  flipMiddle,
  imagesByTruth,
} from "./integrity-lab.ts";

test("a byte that flips in a shared pack names checkpoint, snapshots and fork, and nothing else; and may heal", async () => {
  const api = await start();
  const first = await withFile(api);
  const [pack = ""] = (await checkpoint(api, first), await packs(api));
  const snapshot = await api.take(first, { name: "before" });
  const fork = await api.call<{ items: { id: string }[] }>("POST", `/v1/sandboxes/${first}/fork`, { count: 1 });
  const forked = fork.body.items[0]?.id ?? "";
  await checkpoint(api, forked);
  const other = await withFile(api);
  await checkpoint(api, other);
  expect(await scrub(api)).toMatchObject({ ok: true, images: { whole: 5, damaged: 0 }, problems: [], next_step: null });

  await flipMiddle(pack);
  const report = await scrub(api);
  const truth = await imagesByTruth(api);
  expect([truth.damaged.length, truth.whole.length]).toEqual([4, 1]);
  expect(report.problems.map(({ image }) => image)).toEqual(truth.damaged);
  expect(report.damaged_blocks).toMatchObject([{ pack: expect.any(String), images: truth.damaged }]);
  expect(report).toMatchObject({ ok: false, images: { whole: 1, damaged: 4 }, damaged_block_count: 1 });
  expect(
    report.problems
      .filter(({ current }) => current)
      .map(({ sandbox_id }) => sandbox_id)
      .toSorted(),
  ).toEqual([first, forked].toSorted());
  expect(await api.get("before")).toMatchObject({ state: "damaged", problem: expect.stringContaining("damaged") });
  const events = await told(api);
  expect(
    events
      .filter(({ data }) => data["snapshot_id"] === null)
      .map(({ sandbox_id }) => sandbox_id)
      .toSorted(),
  ).toEqual([first, forked].toSorted());
  expect(events.filter(({ data }) => data["snapshot_id"] === snapshot.id)).toHaveLength(1);
  const { body } = await api.call<ScrubStatus>("GET", "/v1/scrub");
  expect(body).toMatchObject({
    running: false,
    paused: false,
    last: { ok: false },
    last_full_pass_at: report.ended_at,
  });
  const metrics = await (await fetch(`${api.server.httpUrl}/metrics`)).text();
  expect(metrics).toMatch(/^sandboxer_damaged_images 4$/m);
  expect(metrics).toMatch(/^sandboxer_damaged_blocks_total 1$/m);
  expect(metrics).toMatch(/^sandboxer_last_scrub_timestamp_seconds [1-9]/m);

  await flipMiddle(pack);
  expect(await scrub(api)).toMatchObject({ ok: true });
  expect(await api.get("before")).toMatchObject({ state: "ready", problem: null });
});

test("verify checks one snapshot, marks it, and names everything that the damage affects", async () => {
  const api = await start();
  const id = await withFile(api);
  const snapshot = await api.take(id);
  const [pack = ""] = await packs(api);
  const verify = async () => await api.call<IntegrityReport>("POST", `/v1/snapshots/${snapshot.id}/verify`);
  expect((await verify()).body).toMatchObject({ ok: true, images: { whole: 1 }, unnamed_packs: null });
  const name = await checkpoint(api, id);
  await flipMiddle(pack);
  const { status, body } = await verify();
  expect([status, body.ok]).toEqual([200, false]);
  expect(body.problems).toMatchObject([
    { image: `${id}/checkpoints/${name}`, sandbox_id: id, checkpoint: name, snapshot_id: null, current: true },
    { image: `snapshots/${snapshot.id}/image.img`, snapshot_id: snapshot.id, sandbox_id: id, current: false },
  ]);
  expect(body.next_step).toContain("Take another snapshot");
  expect(await api.get(snapshot.id)).toMatchObject({ state: "damaged" });
  await flipMiddle(pack);
  expect((await verify()).body.ok).toBe(true);
  expect(await api.get(snapshot.id)).toMatchObject({ state: "ready" });
  expect(await api.refused("POST", "/v1/snapshots/nothing/verify")).toEqual([404, "snapshot_not_found"]);
});

test("verify of a sandbox names the older checkpoint that is intact, and so does the restore that fails", async () => {
  const api = await start();
  const { id } = await api.http.create();
  const first = await checkpoint(api, id);
  const second = await checkpoint(api, id);
  await putDown(api, id);
  const third = (await api.http.get(id)).checkpoint?.name ?? "";
  const path = (name: string): string => join(api.server.storeFolder ?? "", id, "checkpoints", name);
  const verify = async (body?: object) =>
    (await api.call<IntegrityReport>("POST", `/v1/sandboxes/${id}/verify`, body)).body;
  expect(await verify()).toMatchObject({ ok: true, images: { whole: 3 } });
  const good = await readFile(path(second));
  for (const name of [second, third]) await flipMiddle(path(name));
  const report = await verify();
  expect(report).toMatchObject({ ok: false, images: { whole: 1 } });
  expect(report.next_step).toContain(`?checkpoint=${first}`);
  // An image that no head has named is not a checkpoint, even if it is intact.
  const never = `checkpoint_${Date.now() + 3_600_000}.img`;
  await copyFile(path(first), path(never));
  expect(await verify()).toMatchObject({ ok: false, images: { whole: 2 }, next_step: report.next_step });
  await rm(path(never));
  expect(await verify({ checkpoint: first })).toMatchObject({ ok: true, images: { whole: 1 } });
  expect(await api.refused("POST", `/v1/sandboxes/${id}/verify`, { checkpoint: "checkpoint_1.img" })).toEqual([
    404,
    "checkpoint_not_found",
  ]);
  const resume = async (body: object = {}) => await api.call("POST", `/v1/sandboxes/${id}/resume`, body);
  const refused = await resume();
  expect(refused.body.error).toMatchObject({ code: "image_damaged", details: { whole_checkpoint: first } });
  expect(refused.body.error.hint).toContain(`?checkpoint=${first}`);
  await writeFile(path(second), good);
  expect((await resume()).body.error.details).toMatchObject({ whole_checkpoint: second });
  expect((await resume({ checkpoint: second })).status).toBe(200);
});

test("a running sandbox is intact again when it is saved once more", async () => {
  const api = await start();
  const id = await withFile(api);
  await checkpoint(api, id);
  const [pack = ""] = await packs(api);
  const write = async (path: string): Promise<void> => {
    const url = `${api.server.httpUrl}/v1/sandboxes/${id}/files?path=${path}`;
    await fetch(url, { method: "PUT", headers: { "content-type": "application/octet-stream" }, body: path });
  };
  await write("/workspace/one");
  await checkpoint(api, id);
  await flipMiddle(pack);
  const verify = async (body: object) =>
    (await api.call<IntegrityReport>("POST", `/v1/sandboxes/${id}/verify`, body)).body;
  const damaged = await verify({});
  expect(damaged).toMatchObject({ ok: false, images: { whole: 0, damaged: 2 } });
  expect(damaged.next_step).toContain(`sandboxer checkpoint ${id} --leave-running`);
  await write("/workspace/two");
  const name = await checkpoint(api, id);
  expect(await verify({ checkpoint: name })).toMatchObject({ ok: true, images: { whole: 1 } });
  expect((await packs(api)).length).toBe(2);
});

test("a restore that fails because nothing is intact reports it", async () => {
  const api = await start();
  const { id } = await api.http.create();
  await putDown(api, id);
  const name = (await api.http.get(id)).checkpoint?.name ?? "";
  await flipMiddle(join(api.server.storeFolder ?? "", id, "checkpoints", name));
  const { body } = await api.call("POST", `/v1/sandboxes/${id}/resume`, {});
  expect(body.error).toMatchObject({ code: "image_damaged", details: { whole_checkpoint: null } });
  expect(body.error.hint).toContain("No other checkpoint of the sandbox is intact");
});

test("an image that a head or a record names and that does not exist is missing", async () => {
  const api = await start();
  const { id } = await api.http.create();
  const name = await checkpoint(api, id);
  const { id: snapshot } = await api.take(id);
  const root = api.server.storeFolder ?? "";
  await rm(join(root, id, "checkpoints", name));
  await rm(join(root, "snapshots", snapshot, "image.img"));
  const report = await scrub(api);
  expect(report.problems).toMatchObject(
    [
      { sandbox_id: id, checkpoint: name, state: "missing", current: true },
      { snapshot_id: snapshot, state: "missing" },
    ].toSorted((a, b) => (("sandbox_id" in a ? id : "snapshots") < ("sandbox_id" in b ? id : "snapshots") ? -1 : 1)),
  );
  expect(await api.get(snapshot)).toMatchObject({ state: "missing" });
});

test("encrypted data is read where its key is, and is locked, not damaged, where it is not", async () => {
  const keys = serverKeys(new Map([["main", newKey()]]), "main");
  const api = await start({ masterKeys: keys });
  const id = await withFile(api);
  await checkpoint(api, id);
  await api.take(id, { name: "before" });
  expect(await scrub(api)).toMatchObject({ ok: true, images: { whole: 2, locked: 0 } });
  const other = await start({ store: api.server.storeFolder ?? "" });
  expect(await scrub(other)).toMatchObject({ ok: true, images: { whole: 0, locked: 2 } });
  expect(await other.refused("POST", "/v1/snapshots/before/verify")).toEqual([503, "key_unavailable"]);
  const ofSandbox = `/v1/sandboxes/${id}/verify`;
  const alone = { headers: { "sandboxer-relay": "never" } };
  expect(await other.http.call("POST", ofSandbox, undefined, alone)).toMatchObject({
    status: 503,
    body: { error: { code: "key_unavailable" } },
  });
  // Its owner has the key, and is asked.
  expect(await other.http.call("POST", ofSandbox)).toMatchObject({ status: 200 });
  expect([await other.get("before"), await told(other)]).toMatchObject([{ state: "ready" }, []]);
  const [pack = ""] = await packs(api);
  await flipMiddle(pack);
  expect(await scrub(api)).toMatchObject({ ok: false, images: { damaged: 2 }, damaged_block_count: 1 });
  await rm(pack);
  expect(await scrub(other)).toMatchObject({ ok: false, images: { damaged: 2 }, missing_packs: [{}] });
});

test("data under a client's key is verified with that key", async () => {
  const api = await start();
  const headers = { "sandboxer-encryption-key": randomBytes(32).toString("hex") };
  const { body: box } = await api.http.call<{ id: string }>("POST", "/v1/sandboxes", {}, { headers });
  await checkpoint(api, box.id);
  const path = `/v1/sandboxes/${box.id}/verify`;
  expect(await api.refused("POST", path)).toEqual([403, "key_required"]);
  const { body } = await api.http.call<IntegrityReport>("POST", path, {}, { headers });
  expect(body).toMatchObject({ ok: true, images: { whole: 1 } });
  expect(await scrub(api)).toMatchObject({ ok: true, images: { whole: 0, locked: 1 } });
});
