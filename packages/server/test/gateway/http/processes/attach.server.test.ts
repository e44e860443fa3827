import fc from "fast-check";
import { expect, test } from "vitest";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../../test/kit/server/test-server.ts";
import { ProcessSocket, type ProcessSocketOptions } from "./process-socket.ts";
import { SandboxClient, ticking } from "./support.ts";

const WINDOW_BYTES = 256 * 1024;

function attach(box: SandboxClient, processId: string, query = "", options: ProcessSocketOptions = {}): ProcessSocket {
  return new ProcessSocket(`${box.url}/processes/${processId}/attach${query}`, options);
}

test("delivers output with its stream and offset, accepts stdin, and reports the exit", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const { id, pid } = await box.spawn({ shell: "echo ready; read x; echo got $x >&2; exit 5" });
  const socket = attach(box, id);
  expect(await socket.event("attached")).toEqual({ event: "attached", process_id: id, pid, offset: 0 });
  socket.send(Buffer.from("thing\n"));
  expect(await socket.event("stdin")).toEqual({ event: "stdin", bytes: 6 });
  const end = { event: "exit", exit_code: 5, signal: null, offset: 16, hint: null, timed_out: false };
  expect(await socket.event("exit")).toEqual(end);
  expect(socket.streams).toEqual({ stdout: "ready\n", stderr: "got thing\n" });
  expect(await socket.closed).toBe(1000);
  await eventually("all is acknowledged", async () => (await box.process(id)).acknowledged === 16);
});

test("stdin ends, a terminal is resized, and a signal reaches the process", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const cat = attach(box, (await box.spawn({ shell: "cat; echo end" })).id);
  cat.send(Buffer.from("abc")).send({ action: "stdin_close" });
  await cat.event("exit");
  expect(cat.text).toBe("abcend\n");
  const terminal = attach(box, (await box.spawn({ shell: "read x; stty size", pty: { rows: 1, columns: 1 } })).id);
  terminal.send({ action: "resize", rows: 40, columns: 120 }).send(Buffer.from("\n"));
  await terminal.event("exit");
  expect(terminal.text).toContain("40 120");
  const sleeper = attach(box, (await box.spawn({ shell: "sleep 300" })).id);
  sleeper.send({ action: "signal", signal: "SIGINT" });
  expect(await sleeper.event("exit")).toMatchObject({ exit_code: null, signal: "SIGINT" });
});

test("a client that acknowledges nothing gets its window and blocks the process, not the server", async () => {
  const server = await startTestServer();
  const box = await SandboxClient.create(server);
  const { id } = await box.spawn({ shell: "yes 0123456 | head -c 4000000" });
  const socket = attach(box, id, "", { acknowledge: false });
  await socket.when(() => socket.length > WINDOW_BYTES - 65_536, "the window");
  await eventually("the log is full", async () => (await box.process(id)).output_end === 1024 * 1024);
  expect(socket.length).toBeLessThanOrEqual(WINDOW_BYTES);
  expect(await box.process(id)).toMatchObject({ state: "running", acknowledged: 0 });
  socket.socket.on("message", () => socket.acknowledge());
  socket.acknowledge();
  expect(await socket.event("exit")).toMatchObject({ exit_code: 0, offset: 4_000_000 });
  expect([socket.length, socket.gapBytes]).toEqual([4_000_000, 0]);
});

test("output that was not acknowledged is sent again on request, and no byte is missing after a cut", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const { id } = await box.spawn({ shell: "for i in $(seq 1 20000); do echo line $i; done" });
  const seen: Buffer[] = [];
  let offset = 0;
  for (let cut = 1; ; cut += 1) {
    const socket = attach(box, id, `?offset=${offset}`);
    await socket.when(() => socket.length > cut * 20_000 || socket.events.some((e) => e.event === "exit"), "output");
    socket.socket.terminate();
    await socket.closed;
    expect([socket.events[0]?.event, socket.gapBytes]).toEqual(["attached", 0]);
    seen.push(...socket.received);
    offset = socket.offset ?? 0;
    if (socket.events.some(({ event }) => event === "exit")) break;
  }
  const expected = Array.from({ length: 20_000 }, (_, index) => `line ${index + 1}\n`).join("");
  expect(Buffer.concat(seen).toString("utf8")).toBe(expected);
});

test("a new client replaces the old one, which gets a message", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const { id } = await box.spawn({ shell: ticking });
  const first = attach(box, id);
  await first.when(() => first.length > 0, "a tick");
  const second = attach(box, id, "?offset=0");
  await second.when(() => second.length > 100, "ticks");
  expect(await first.closed).toBe(4000);
  expect(first.events.at(-1)).toMatchObject({ event: "error", code: "sandbox_in_use" });
  expect(second.text.startsWith("tick 1\ntick 2\n")).toBe(true);
  // A look does not take over.
  const before = second.length;
  expect((await box.output(id, "?offset=0")).at(-1)).toMatchObject({ event: "end" });
  await second.when(() => second.length > before + 50, "more ticks");
  expect(second.gapBytes).toBe(0);
});

test("a detached process keeps running however slow its client is, and the client sees the gap", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const { id } = await box.spawn({ shell: "read x; yes 0123456 | head -c 4000000; read y", detach: true });
  const socket = attach(box, id, "", { acknowledge: false });
  await socket.event("attached");
  socket.send(Buffer.from("go\n"));
  await eventually("it has written all", async () => (await box.process(id)).output_end === 4_000_000);
  expect(socket.length).toBeLessThanOrEqual(WINDOW_BYTES);
  socket.acknowledge().send(Buffer.from("end\n"));
  expect(await socket.event("exit")).toMatchObject({ exit_code: 0, offset: 4_000_000 });
});

test("refuses missing rights, missing processes and invalid requests", async () => {
  const server = await startTestServer({ apiKeys: ["a-key-of-the-server"] });
  const { client, id, token } = await server.create({}, { headers: { authorization: "Bearer a-key-of-the-server" } });
  await client.leave();
  const path = `${server.httpUrl}/v1/sandboxes/${id}`;
  const response = await fetch(`${path}/exec`, {
    method: "POST",
    headers: { authorization: "Bearer a-key-of-the-server", "content-type": "application/json" },
    body: JSON.stringify({ shell: ticking, wait: false }),
  });
  const process = (await response.json()) as { id: string };
  const outcome = async (query: string, processId = process.id, first?: object | string | Uint8Array) => {
    const socket = new ProcessSocket(`${path}/processes/${processId}/attach${query}`);
    if (first !== undefined) socket.send(first);
    const code = await socket.closed;
    const last = socket.events.at(-1);
    return [last?.event === "error" ? last.code : last?.event, code];
  };
  const good = `?sandbox_token=${token}`;
  expect(await outcome("")).toEqual([undefined, 1006]);
  expect(await outcome(`?sandbox_token=${"0".repeat(64)}`)).toEqual(["permission_denied", 4000]);
  expect(await outcome(good, "no-such-process")).toEqual(["process_not_found", 4000]);
  expect(await outcome(`${good}&offset=-1`)).toEqual(["bad_request", 4000]);
  expect(await outcome(good, process.id, "no json")).toEqual(["bad_request", 4000]);
  expect(await outcome(good, process.id, { action: "ack", offset: 10 ** 12 })).toEqual(["bad_request", 4000]);
  expect(await outcome(good, process.id, { action: "resize", rows: 1, columns: 1 })).toEqual(["bad_request", 4000]);
  expect(await outcome(good, process.id, Buffer.alloc(1024 * 1024 + 1))).toEqual(["attached", 1009]);
  const fed = new ProcessSocket(`${path}/processes/${process.id}/attach${good}`);
  for (let sent = 0; sent < 3; sent += 1) fed.send(Buffer.alloc(500_000));
  expect([await fed.closed, fed.events.at(-1)]).toMatchObject([4000, { event: "error", code: "too_large" }]);
});

test("whatever a client sends, the server and the process keep running", async () => {
  const server = await startTestServer();
  const box = await SandboxClient.create(server);
  const { id } = await box.spawn({ shell: ticking });
  const action = fc.oneof(
    fc.record({ action: fc.constantFrom("ack", "stdin_close", "resize", "signal", "x"), offset: fc.anything() }),
    fc.record({ action: fc.constant("resize"), rows: fc.anything(), columns: fc.integer() }),
    fc.record({ action: fc.constant("signal"), signal: fc.oneof(fc.constant("SIGCONT"), fc.string(), fc.double()) }),
    fc.anything(),
  );
  const frame = fc.oneof(
    action.map((value) => JSON.stringify(value) ?? ""),
    fc.string(),
    fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { maxLength: 10 }), async (frames) => {
      const socket = attach(box, id);
      for (const sent of frames) socket.send(sent);
      await socket.when(() => socket.length > 0 || socket.closeCode !== undefined, "ticks");
      socket.socket.terminate();
      await socket.closed;
      expect([1006, 4000]).toContain(socket.closeCode);
    }),
    { numRuns: 60 },
  );
  const last = attach(box, id);
  await last.when(() => last.length > 0, "ticks");
  expect(last.gapBytes).toBe(0);
  expect(server.problems).toEqual([]);
});
