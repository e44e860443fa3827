import type { OperationRecordBody, ScrubStatus } from "@sandboxer/protocol";
import { expect, test, vi } from "vitest";
import { collectGarbage } from "../../../src/collection/collect-garbage.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { start, withFile, checkpoint, scrub, told, packs, flipMiddle } from "./integrity-lab.ts";

test("saves and a collection beside it are no damage", async () => {
  const api = await start({ retention: { checkpoints: { keep_last: 1 } } });
  const boxes = [await withFile(api), await withFile(api)];
  for (const id of boxes) await checkpoint(api, id);
  const store = await openStore(api.server.storeFolder ?? "");
  const counts = { saves: 0, passes: 0 };
  const enough = new AbortController();
  const saving = async (id: string): Promise<void> => {
    while (!enough.signal.aborted) {
      await checkpoint(api, id);
      const { id: snapshot } = await api.take(id);
      await api.remove(snapshot);
      counts.saves += 1;
    }
  };
  const collecting = async (): Promise<void> => {
    while (!enough.signal.aborted) await collectGarbage({ store, clock: systemClock, apply: true, keep: {} });
  };
  const beside = [...boxes.map(saving), collecting()];
  while (counts.passes < 8 || counts.saves < 6) {
    const report = await scrub(api);
    expect([report.problems, report.damaged_blocks, report.missing_packs]).toEqual([[], [], []]);
    counts.passes += 1;
  }
  enough.abort();
  await Promise.all(beside);
  expect(await told(api)).toEqual([]);
});

test("one at a time; a stopped one continues where it was, and a server that ends does not wait for it", async () => {
  const api = await start();
  const id = await withFile(api);
  await checkpoint(api, id);
  const begun = await fetch(`${api.server.httpUrl}/v1/scrub`, {
    method: "POST",
    headers: { prefer: "respond-async", "content-type": "application/json" },
    body: JSON.stringify({ rate_mb: 0.001 }),
  });
  const operation = (await begun.json()) as OperationRecordBody;
  expect([begun.status, operation.kind]).toEqual([202, "scrub"]);
  const status = async () => (await api.call<ScrubStatus>("GET", "/v1/scrub")).body;
  await expect.poll(async () => await status()).toMatchObject({ running: true });
  expect(await api.refused("POST", "/v1/scrub", {})).toEqual([409, "wrong_state"]);
  expect((await api.call("DELETE", "/v1/scrub")).status).toBe(204);
  await expect.poll(async () => await status()).toMatchObject({ running: false, paused: true });
  const ended = await api.call<OperationRecordBody>("GET", `/v1/operations/${operation.id}?wait=5`);
  expect(ended.body).toMatchObject({ state: "failed", error: { hint: "The next one continues where it stopped." } });
  // No limit, as with --scrub-rate-mb 0: the rate of before would take hours.
  expect(await scrub(api, { rate_mb: 0 })).toMatchObject({ ok: true, images: { whole: 1 } });
  expect(await status()).toMatchObject({ paused: false });
  void api.call("POST", "/v1/scrub", { rate_mb: 0.001 }).catch(() => {});
  await expect.poll(async () => await status()).toMatchObject({ running: true });
  await api.server.drain();
});

test("the server scrubs automatically when it is due, once for all servers of the store", async () => {
  const api = await start({ scrub: { everyMs: 50, rateMb: undefined } });
  const id = await withFile(api);
  await checkpoint(api, id);
  const [pack = ""] = await packs(api);
  await flipMiddle(pack);
  await vi.waitFor(async () => expect(await told(api)).not.toEqual([]), { timeout: 60_000 });
  const week = 7 * 24 * 3_600_000;
  const later = await start({ store: api.server.storeFolder ?? "", scrub: { everyMs: week } });
  await later.server.manager.integrity.runIfDue();
  const { body } = await later.call<ScrubStatus>("GET", "/v1/scrub");
  expect(body).toMatchObject({ every_seconds: week / 1000, last: null, last_full_pass_at: expect.any(String) });
  expect(later.server.manager.integrity.figures).toMatchObject({ damagedImages: 1 });
});

test("an automatic scrub that a user stopped does not start again at the next check", async () => {
  const api = await start({ scrub: { everyMs: 3_600_000, rateMb: 0.001 } });
  await checkpoint(api, await withFile(api));
  const { integrity } = api.server.manager;
  const running = integrity.runIfDue();
  await expect.poll(async () => await integrity.status()).toMatchObject({ running: true });
  integrity.stop();
  await expect(running).rejects.toMatchObject({ message: "The scrub was stopped." });
  await integrity.runIfDue();
  expect(await integrity.status()).toMatchObject({ running: false, paused: true, last: null });
});

test("without a store there is nothing to scrub", async () => {
  const api = await start({ store: null });
  expect(await api.refused("POST", "/v1/scrub", {})).toEqual([422, "checkpoint_disabled"]);
});
