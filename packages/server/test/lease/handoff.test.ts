import { expect, it, vi } from "vitest";
import { checkpoint, newSandbox } from "./samples.ts";
import { at, instance, type TestInstance, twoInstances } from "./test-instances.ts";

const HANDOFF_MS = 20_000;

/** The owner saves and yields whatever it is asked for. */
function yieldWhatIsWanted(owner: TestInstance, number: number): string[] {
  const asked: string[] = [];
  owner.instances.listen({
    onWanted: (sandboxId, by) => {
      asked.push(by);
      void owner.publishAndRelease(at(sandboxId), checkpoint(number));
    },
  });
  return asked;
}

it("moves from a live owner to the requesting server, with the last saved state", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  await a.publish(at(id), checkpoint(1));
  const asked = yieldWhatIsWanted(a, 2);
  const onWaiting = vi.fn<(owner: string, url: string | undefined) => void>();
  const head = await b.claim(id, { handoffTimeoutMs: HANDOFF_MS, onWaiting });
  expect(head).toMatchObject({ owner: b.name, epoch: 2, checkpoint: checkpoint(2), want: null });
  expect(asked).toEqual([b.name]);
  expect(onWaiting).toHaveBeenCalledExactlyOnceWith(a.name, expect.stringContaining("http://"));
  expect(a.held(id)).toBeUndefined();
});

it("moves at once when the owner reads the bell", async () => {
  const { a, store, id } = await twoInstances();
  await a.create(id, newSandbox());
  yieldWhatIsWanted(a, 1);
  const ring = vi.fn(async (_url: string, sandboxId: string) => a.instances.rung(sandboxId));
  const b = await instance(store, { ring, settings: { waitPollMs: 10 } });
  // By itself the owner would look later than anybody waits here.
  await b.claim(id, { handoffTimeoutMs: HANDOFF_MS });
  expect(ring).toHaveBeenCalledOnce();
});

it("a waiting server is rung when the sandbox is free, and need not poll", async () => {
  const { store, id } = await twoInstances();
  const ring = async (url: string, sandboxId: string): Promise<void> => {
    (url === "http://a" ? a : b).instances.rung(sandboxId);
  };
  const a = await instance(store, { url: "http://a", ring });
  const b = await instance(store, { url: "http://b", ring, settings: { waitPollMs: 3_600_000 } });
  await a.create(id, newSandbox());
  yieldWhatIsWanted(a, 1);
  expect(await b.claim(id, { handoffTimeoutMs: HANDOFF_MS })).toMatchObject({ owner: b.name, epoch: 2 });
});

it("stays if the owner refuses, and can be requested again", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  let refuse = true;
  a.instances.listen({
    onWanted: (sandboxId) => {
      void (refuse ? a.refuse(sandboxId, "in use") : a.publishAndRelease(at(sandboxId), checkpoint(1)));
    },
  });
  await expect(b.claim(id, { handoffTimeoutMs: HANDOFF_MS })).rejects.toMatchObject({
    code: "lease_held",
    message: expect.stringContaining("in use") as unknown,
    details: { holder: a.name, refused: "in use", epoch: 1 },
  });
  expect(await a.publish(at(id), checkpoint(7))).toMatchObject({ owner: a.name, checkpoint: checkpoint(7) });
  refuse = false;
  expect(await b.claim(id, { handoffTimeoutMs: HANDOFF_MS })).toMatchObject({ owner: b.name, epoch: 2 });
});

it("stays if the owner does not answer in time, and the request is withdrawn", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  await expect(b.claim(id, { handoffTimeoutMs: 100 })).rejects.toMatchObject({
    code: "lease_held",
    details: { holder: a.name, refused: "timed out" },
  });
  await vi.waitFor(async () => expect((await a.read(id))?.want).toBeNull(), { timeout: HANDOFF_MS });
  expect(await a.publish(at(id), checkpoint(1))).toMatchObject({ owner: a.name, epoch: 1 });
});

it("withdraws the request when nobody waits any more", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  const stop = new AbortController();
  const claim = b.claim(id, {
    handoffTimeoutMs: HANDOFF_MS,
    signal: stop.signal,
    onWaiting: () => stop.abort(new Error("gone")),
  });
  await expect(claim).rejects.toThrow("gone");
  await vi.waitFor(async () => expect((await a.read(id))?.want).toBeNull(), { timeout: HANDOFF_MS });
});

it("lets one server wait at a time, and reports that to the others", async () => {
  const { a, b, store, id } = await twoInstances();
  const c = await instance(store);
  await a.create(id, newSandbox());
  const waiting = Promise.withResolvers<void>();
  const first = b.claim(id, { handoffTimeoutMs: HANDOFF_MS, onWaiting: () => waiting.resolve() });
  await waiting.promise;
  await expect(c.claim(id, { handoffTimeoutMs: HANDOFF_MS })).rejects.toMatchObject({
    details: { refused: expect.stringContaining("already waits for it") as unknown },
  });
  await a.publishAndRelease(at(id), checkpoint(1));
  expect(await first).toMatchObject({ owner: b.name });
});

it("moves to the waiting server when the owner turns out to be dead", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  await a.publish(at(id), checkpoint(1));
  const lost = vi.fn<(sandboxId: string) => void>();
  a.instances.listen({ onLost: lost });
  const head = await b.claim(id, {
    handoffTimeoutMs: HANDOFF_MS,
    onWaiting: (owner) => void b.instances.markDead(owner),
  });
  expect(head).toMatchObject({ owner: b.name, epoch: 2, checkpoint: checkpoint(1) });
  a.instances.rung(id);
  await expect.poll(() => lost).toHaveBeenCalledExactlyOnceWith(id, expect.anything());
  expect(a.held(id)).toBeUndefined();
});

it("releases a claim that succeeded after its caller had left", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  await a.publishAndRelease(at(id), checkpoint(1));
  const stop = new AbortController();
  const claim = b.claim(id, { signal: stop.signal });
  stop.abort(new Error("gone"));
  await expect(claim).rejects.toThrow("gone");
  await expect.poll(async () => (await a.read(id))?.owner).toBeNull();
  expect(await a.claim(id)).toMatchObject({ owner: a.name, checkpoint: checkpoint(1) });
});

it("a server that ends informs the server that waits for a sandbox", async () => {
  const { a, b, id } = await twoInstances();
  await a.create(id, newSandbox());
  const asked = Promise.withResolvers<void>();
  const claim = b.claim(id, { handoffTimeoutMs: HANDOFF_MS, onWaiting: () => asked.resolve() });
  const failed = claim.catch((error: unknown) => error);
  await asked.promise;
  await b.instances.close();
  expect(await failed).toMatchObject({ code: "draining" });
});
