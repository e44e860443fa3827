import { expect, onTestFinished, test } from "vitest";
import { startTestServer as startHiddenServer } from "../../../../test/kit/server/test-server.ts";
import { Sandbox, Sandboxer, type OutputChunk, type SandboxProcess, type SandboxRecord } from "../../src/index.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../../src/testing/index.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";

const RETRY = { firstDelayMs: 1, maxDelayMs: 20, attempts: 200 };
const TICKS = 150;
/** Writes to both streams, a little at a time. */
const TICKING = `for i in $(seq 1 ${TICKS}); do echo tick $i; echo error $i >&2; sleep 0.002; done; exit 7`;
const EXPECTED = {
  stdout: Array.from({ length: TICKS }, (_, index) => `tick ${index + 1}\n`).join(""),
  stderr: Array.from({ length: TICKS }, (_, index) => `error ${index + 1}\n`).join(""),
};

async function server(options?: TestServerOptions): Promise<TestServer> {
  const started = await startTestServer(options);
  onTestFinished(() => started.close());
  return started;
}

/** Every byte, with a check that offsets have no gap and no overlap. */
async function readAll(process: SandboxProcess, onChunk: (chunk: OutputChunk) => void = () => {}) {
  const texts = { stdout: "", stderr: "" };
  let end = 0;
  for await (const chunk of process.chunks()) {
    expect(chunk.offset - chunk.data.length).toBe(end);
    end = chunk.offset;
    texts[chunk.stream] += new TextDecoder().decode(chunk.data);
    onChunk(chunk);
  }
  return texts;
}

test("connections that are cut at random bytes neither lose nor repeat bytes", async () => {
  const { url } = await server();
  const proxy = await cuttingProxy(url, () => 1 + Math.floor(Math.random() * 2500));
  const direct = await Sandbox.create({ url });
  const sandbox = await Sandbox.attach(direct.id, { url: proxy.url, retry: RETRY });
  const process = await sandbox.spawn(TICKING);
  expect(await readAll(process)).toEqual(EXPECTED);
  expect(proxy.cuts).toBeGreaterThan(0);
  expect(await direct.processes()).toHaveLength(1);
});

test("a command through a proxy that cuts connections is run once, and its result is complete", async () => {
  const { url } = await server();
  let connections = 0;
  // Every third connection is not cut, so that each call succeeds in the end.
  const proxy = await cuttingProxy(url, () =>
    (connections += 1) % 3 === 0 ? Number.POSITIVE_INFINITY : 1 + Math.floor(Math.random() * 700),
  );
  const direct = await Sandbox.create({ url });
  const sandbox = await Sandbox.attach(direct.id, { url: proxy.url, retry: RETRY });
  for (let turn = 1; turn <= 10 || proxy.cuts <= 5; turn += 1) {
    expect(await sandbox.exec("echo x >> count; cat count")).toMatchObject({ stdout: "x\n".repeat(turn), exitCode: 0 });
  }
});

test("a connection that dies silently is noticed", async () => {
  const { url } = await server();
  const proxy = await cuttingProxy(url);
  const sandbox = await Sandbox.create({ url: proxy.url, retry: RETRY, silenceMs: 50 });
  const process = await sandbox.spawn(TICKING);
  let stalled = false;
  const texts = await readAll(process, ({ offset }) => {
    if (stalled || offset < 500) return;
    stalled = true;
    proxy.stall();
  });
  expect(stalled).toBe(true);
  expect(texts).toEqual(EXPECTED);
});

test("a program that is silent for long is not interrupted", async () => {
  const { url } = await server();
  const sandbox = await Sandbox.create({ url, silenceMs: 5 });
  expect(await sandbox.exec("echo a; sleep 0.2; echo b")).toMatchObject({ stdout: "a\nb\n" });
});

test("the end of the client ends the reading with its reason", async () => {
  const { url } = await server();
  const abort = new AbortController();
  const client = new Sandboxer({ url, signal: abort.signal });
  const sandbox = await Sandbox.create({ client });
  const reading = readAll(await sandbox.spawn(TICKING), () => abort.abort(new Error("enough")));
  await expect(reading).rejects.toThrow("enough");
});

test("a detach in the middle ends the reading without an error", async () => {
  const { url } = await server();
  const sandbox = await Sandbox.create({ url });
  const process = await sandbox.spawn("echo first; sleep 60");
  const reading = readAll(process, () => setImmediate(() => process.detach()));
  expect(await reading).toEqual({ stdout: "first\n", stderr: "" });
  await process.kill();
});

test("a sandbox that moved to an unreachable server is requested, and nothing is lost", async () => {
  // These servers store an address where nothing listens.
  const from = await startHiddenServer();
  const to = await startHiddenServer({ store: from.storeFolder ?? null });
  const sandbox = await Sandbox.create({ url: from.httpUrl, retry: RETRY });
  const other = await Sandbox.attach(sandbox.id, { url: to.httpUrl });
  let taken: Promise<unknown> | undefined;
  const texts = await readAll(await sandbox.spawn(TICKING), ({ offset }) => {
    if (offset > 500) taken ??= other.resume();
  });
  expect((await taken) as SandboxRecord).toMatchObject({ state: "running" });
  expect(texts).toEqual(EXPECTED);
});

test("a handoff in the middle neither loses nor repeats bytes; the handle follows", async () => {
  const from = await server();
  const to = await server({ store: from.store });
  const sandbox = await Sandbox.create({ url: from.url, enableCheckpoint: true, enableSandboxHandoff: true });
  const process = await sandbox.spawn(TICKING);
  let moved: Promise<unknown> | undefined;
  const texts = await readAll(process, ({ offset }) => {
    if (offset > 500) moved ??= sandbox.handoff(to.url);
  });
  await moved;
  expect(texts).toEqual(EXPECTED);
  expect(await process.wait().catch((error: unknown) => error)).toMatchObject({ code: "wrong_state" });
  expect((await sandbox.refresh()).owner).toMatchObject({ url: to.url });
  expect(await sandbox.exec("echo here")).toMatchObject({ stdout: "here\n" });
});

test("another server behind the same address replaces one that ends in the middle", async () => {
  const from = await server();
  const to = await server({ store: from.store });
  const address = await cuttingProxy(from.url);
  const sandbox = await Sandbox.create({ url: address.url, retry: RETRY });
  const process = await sandbox.spawn(TICKING);
  let drained: Promise<unknown> | undefined;
  const texts = await readAll(process, ({ offset }) => {
    if (offset < 500 || drained !== undefined) return;
    address.retarget(to.url);
    drained = from.drain();
  });
  await drained;
  expect(texts).toEqual(EXPECTED);
  expect((await sandbox.refresh()).owner).toMatchObject({ url: to.url });
});

test("a checkpoint by this client ends the reading, and the offset is valid after it", async () => {
  const { url } = await server();
  const sandbox = await Sandbox.create({ url, enableCheckpoint: true });
  const process = await sandbox.spawn(TICKING);
  const seen = { stdout: "", stderr: "" };
  const put = { down: undefined as Promise<unknown> | undefined };
  const reading = (async () => {
    for await (const { stream, data } of process.chunks()) {
      seen[stream] += new TextDecoder().decode(data);
      if (seen.stdout.length > 300) put.down ??= sandbox.checkpoint();
    }
  })();
  const error: unknown = await reading.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: "wrong_state",
    details: { state: "stored", process_id: process.id, offset: process.offset },
  });
  await put.down;
  expect((await sandbox.refresh()).state).toBe("stored");
  const again = await sandbox.process(process.id, { offset: process.offset });
  for await (const { stream, data } of again.chunks()) seen[stream] += new TextDecoder().decode(data);
  expect(seen).toEqual(EXPECTED);
  expect(await again.info()).toMatchObject({ state: "exited", exitCode: 7 });
});
