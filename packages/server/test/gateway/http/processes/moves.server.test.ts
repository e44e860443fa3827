import { SandboxerError, type ExecResult } from "@sandboxer/protocol";
import { expect, test, vi } from "vitest";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import { startTestServer, type TestServer } from "../../../../../../test/kit/server/test-server.ts";
import { ProcessSocket } from "./process-socket.ts";
import { lines, SandboxClient, text, ticking } from "./support.ts";

/** Two servers of one store, and a sandbox on the first. */
async function two(
  body: object = {},
): Promise<{ a: TestServer; b: TestServer; here: SandboxClient; there: SandboxClient }> {
  const store = await temporaryFolder();
  const [a, b] = [await startTestServer({ store }), await startTestServer({ store })];
  const here = await SandboxClient.create(a, body);
  return { a, b, here, there: new SandboxClient(b, here.id) };
}

async function resume(box: SandboxClient): Promise<void> {
  const answer = await box.call("POST", "/resume");
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
}

const KEY = { "idempotency-key": "the-key" };

test("the same key runs once, here, after a handoff and after a restore, with the same response", async () => {
  const { here, there } = await two();
  const request = { shell: "echo x >> /workspace/runs; cat /workspace/runs; echo err >&2; exit 7" };
  const first = await here.exec(request, KEY);
  expect(first).toMatchObject({ exit_code: 7, stdout: "x\n", stderr: "err\n" });
  const same = ({ process_id, exit_code, signal, stdout, stderr, truncated }: ExecResult) => ({
    process_id,
    exit_code,
    signal,
    stdout,
    stderr,
    truncated,
  });
  expect(same(await here.exec(request, KEY))).toEqual(same(first));
  await resume(there);
  expect(same(await there.exec(request, KEY))).toEqual(same(first));
  await there.call("POST", "/checkpoint");
  await resume(here);
  expect(same(await here.exec(request, KEY))).toEqual(same(first));
  expect((await here.exec({ shell: "cat /workspace/runs" })).stdout).toBe("x\n");
  const other = await here.call("POST", "/exec", { shell: "true" }, KEY);
  expect([other.status, other.body.error.message]).toEqual([400, "This Idempotency-Key was used for another request."]);
  expect((await here.exec({ shell: "true" }, { "idempotency-key": "another" })).process_id).not.toBe(first.process_id);
});

test("a retry has all output of moderate size, and reports a dropped beginning of large output", async () => {
  const { here, there } = await two();
  const moderate = { shell: "yes 0123456 | head -c 700000" };
  const large = { shell: "yes 0123456 | head -c 3000000" };
  const other = { "idempotency-key": "other" };
  await here.exec(moderate, KEY);
  expect(await here.exec(large, other)).toMatchObject({ truncated: false });
  await resume(there);
  const again = await there.exec(moderate, KEY);
  expect([again.stdout, again.truncated]).toEqual(["0123456\n".repeat(87_500), false]);
  const cut = await there.exec(large, other);
  expect([cut.truncated, cut.stdout.length >= 768 * 1024, cut.stdout.length < 3_000_000]).toEqual([true, true, true]);
});

test("a retry of an exec that is still running finds it, also elsewhere", async () => {
  const { here, there } = await two();
  const request = { shell: "echo begun >> /workspace/runs; read x; cat /workspace/runs" };
  const cut = here.call("POST", "/exec", request, KEY);
  await eventually("it runs", async () => (await here.processes()).length === 1);
  await resume(there);
  const { status, body } = await cut;
  expect([status, body.error.code, body.error.details["state"]]).toEqual([409, "wrong_state", "saving"]);
  const again = there.exec(request, KEY);
  expect(await there.stdin(String(body.error.details["process_id"]), "\n")).toBe(204);
  expect(await again).toMatchObject({ exit_code: 0, stdout: "begun\n", process_id: body.error.details["process_id"] });
});

test("an exec whose sandbox is saved right after its start names the started process", async () => {
  const { a, here, there } = await two();
  const { queue } = await a.live(here.id);
  const gate = Promise.withResolvers<void>();
  const held = queue.run(() => gate.promise);
  const queued = vi.spyOn(queue, "run");
  const request = { shell: "echo begun >> /workspace/runs; read x; cat /workspace/runs" };
  const cut = here.call("POST", "/exec", request, KEY);
  await eventually("it waits to be started", () => queued.mock.calls.length === 1);
  const saving = here.call("POST", "/checkpoint");
  await eventually("the save waits behind it", () => queued.mock.calls.length === 2);
  gate.resolve();
  await held;
  expect((await saving).status).toBe(200);
  const { status, body } = await cut;
  expect([status, body.error.code]).toEqual([409, "wrong_state"]);
  await resume(there);
  const again = there.exec(request, KEY);
  expect(await there.stdin(String(body.error.details["process_id"]), "\n")).toBe(204);
  expect(await again).toMatchObject({ exit_code: 0, stdout: "begun\n" });
});

test("a ticking process survives a handoff, and no byte is missing or repeated", async () => {
  const { here, there } = await two();
  const { id } = await here.spawn({ shell: ticking });
  const seen: Buffer[] = [];
  let offset = 0;
  let box = here;
  for (let move = 0; move < 4; move += 1) {
    const socket = new ProcessSocket(`${box.url}/processes/${id}/attach?offset=${offset}`, {
      // Half of the time the sandbox must bring along what was never acknowledged.
      acknowledge: move % 2 === 0,
    });
    await socket.when(() => socket.length > 200, "ticks");
    box = box === here ? there : here;
    await resume(box);
    const moving = await socket.event("moving");
    expect(await socket.closed).toBe(1012);
    expect([moving.offset, moving.stdin_bytes, socket.gapBytes]).toEqual([socket.offset, 0, 0]);
    expect(socket.events[0]).toMatchObject({ event: "attached", offset });
    seen.push(...socket.received);
    offset = socket.offset ?? 0;
  }
  const ticks = Buffer.concat(seen).toString("utf8").split("\n").slice(0, -1);
  expect(ticks).toEqual(ticks.map((_, index) => `tick ${index + 1}`));
});

test("stdin continues where it was accepted: no line is lost or repeated", async () => {
  const { here, there } = await two();
  const { id } = await here.spawn({ shell: "while read x; do echo got $x; done" });
  const input = Buffer.from(Array.from({ length: 3000 }, (_, index) => `${index}\n`).join(""));
  let [box, offset, taken] = [here, 0, 0];
  const seen: Buffer[] = [];
  for (let move = 0; move < 3; move += 1) {
    const socket = new ProcessSocket(`${box.url}/processes/${id}/attach?offset=${offset}`);
    await socket.event("attached");
    const end = Math.floor((input.length * (move + 1)) / 4);
    for (let at = taken; at < end; at += 7) socket.send(input.subarray(at, Math.min(at + 7, end)));
    await socket.when(() => socket.length > 100, "answers");
    box = box === here ? there : here;
    await resume(box);
    taken += (await socket.event("moving")).stdin_bytes;
    await socket.closed;
    seen.push(...socket.received);
    offset = socket.offset ?? 0;
  }
  const last = new ProcessSocket(`${box.url}/processes/${id}/attach?offset=${offset}`);
  last.send(input.subarray(taken)).send({ action: "stdin_close" });
  await last.event("exit");
  const answers = Buffer.concat([...seen, ...last.received]).toString("utf8");
  expect(answers).toBe(input.toString("utf8").replaceAll(/^(?=.)/gm, "got "));
});

test("a streamed exec reports the move, and its output continues there", async () => {
  const { here, there } = await two();
  const all = lines(await here.stream({ shell: "echo one; read x; echo two" }));
  const started = (await all.next()).value;
  if (started?.event !== "started") throw new Error("not started");
  expect((await all.next()).value).toMatchObject({ data: "one\n" });
  await resume(there);
  const moving = { event: "moving", process_id: started.process_id, offset: 4 };
  expect(await Array.fromAsync(all)).toEqual([moving]);
  await there.stdin(started.process_id, "\n");
  expect(text(await there.output(started.process_id, "?follow=true&offset=4"))).toBe("two\n");
});

test("attaching during a save waits for it, and then names the location of the sandbox", async () => {
  const { a, here } = await two();
  const { id } = await here.spawn({ shell: ticking });
  const held = Promise.withResolvers<void>();
  a.backend.faults.set("snapshot", { until: held.promise });
  const saving = here.call("POST", "/checkpoint");
  const sandbox = await a.live(here.id).catch(() => undefined);
  await eventually("it is being saved", () => sandbox === undefined || sandbox.state === "saving");
  const socket = new ProcessSocket(`${here.url}/processes/${id}/attach`);
  held.resolve();
  expect((await saving).status).toBe(200);
  expect(await socket.closed).toBe(4000);
  expect(socket.events).toMatchObject([{ event: "error", code: "wrong_state", message: "The sandbox is paused." }]);
});

test("after a failed save, the process is unchanged", async () => {
  const { a, here } = await two();
  const { id } = await here.spawn({ shell: ticking });
  const first = new ProcessSocket(`${here.url}/processes/${id}/attach`);
  await first.when(() => first.length > 100, "ticks");
  a.backend.faults.set("snapshot", { error: new SandboxerError("no_space", "No room.") });
  expect((await here.call("POST", "/checkpoint")).status).not.toBe(200);
  a.backend.faults.clear();
  expect(await first.closed).toBe(1012);
  const second = new ProcessSocket(`${here.url}/processes/${id}/attach?offset=${first.offset}`);
  await second.when(() => second.length > 100, "more ticks");
  const ticks = (first.text + second.text).split("\n").slice(0, -1);
  expect(ticks).toEqual(ticks.map((_, index) => `tick ${index + 1}`));
});

test("detached processes are read after a restore too, and a timeout counts there", async () => {
  const { here, there } = await two();
  const detached = await here.spawn({ shell: "read x; yes 0123456 | head -c 3000000; echo end", detach: true });
  const limited = await here.spawn({ shell: "sleep 300", timeout: 1 });
  await resume(there);
  await there.stdin(detached.id, "\n");
  await eventually("it has ended", async () => (await there.process(detached.id)).exit_code === 0);
  expect(await there.process(detached.id)).toMatchObject({ detached: true, output_end: 3_000_004 });
  expect(text(await there.output(detached.id, "?offset=3000000"))).toBe("end\n");
  await eventually("its time is over", async () => (await there.process(limited.id)).signal === "SIGTERM");
});

test("without the handoff flag a sandbox stays where a process runs, unless that is detached", async () => {
  const { here, there } = await two({ enable_sandbox_handoff: false });
  const { id } = await here.spawn({ shell: "sleep 300" });
  const refused = await there.call("POST", "/resume");
  expect([refused.status, refused.body.error.code]).toEqual([409, "lease_held"]);
  expect((await here.call("DELETE", `/processes/${id}`)).status).toBe(204);
  await here.spawn({ shell: "sleep 300", detach: true });
  await resume(there);
  expect(await there.processes()).toMatchObject([{ state: "running", detached: true }]);
});

test("a snapshot disturbs no reader, and a copy continues with unacknowledged output", async () => {
  const { a, here } = await two();
  const { id } = await here.spawn({ shell: ticking });
  const socket = new ProcessSocket(`${here.url}/processes/${id}/attach`, { acknowledge: false });
  await socket.when(() => socket.length > 100, "ticks");
  const taken = await here.call<{ id: string }>("POST", "/snapshot", {});
  const before = socket.length;
  await socket.when(() => socket.length > before + 100, "more ticks");
  expect([socket.gapBytes, socket.closeCode]).toEqual([0, undefined]);
  const made = await here.http.call<{ id: string }>("POST", `/v1/snapshots/${taken.body.id}/restore`, {});
  const copy = new SandboxClient(a, made.body.id);
  const other = new ProcessSocket(`${copy.url}/processes/${id}/attach`);
  await other.when(() => other.length > before, "ticks of the copy");
  expect(other.text.startsWith("tick 1\n")).toBe(true);
});

test("commands and start times are kept after a handoff, a restore and a fork, and in a paused sandbox", async () => {
  const { a, here, there } = await two();
  const began = await here.spawn({ shell: "echo ready; echo late >&2; sleep 300" });
  const ended = await here.spawn({ command: ["echo", "done"] });
  expect(Date.parse(began.started_at ?? "")).toBeGreaterThan(Date.now() - 60_000);
  await eventually("both have written", async () => {
    const [one, other] = [await here.process(began.id), await here.process(ended.id)];
    return one.output_end === 11 && other.exit_code === 0;
  });
  const known = [
    { id: began.id, command: began.command, started_at: began.started_at, state: "running", output_end: 11 },
    { id: ended.id, command: ["echo", "done"], started_at: ended.started_at, state: "exited", exit_code: 0 },
  ];
  await resume(there);
  expect(await there.processes()).toMatchObject(known);

  const { items } = (await there.call<{ items: { id: string }[] }>("POST", "/fork", { count: 1 })).body;
  const fork = new SandboxClient({ httpUrl: there.url.replace(/\/v1\/.*/, "") }, items[0]?.id ?? "");
  expect(await fork.processes()).toMatchObject(known);

  expect((await there.call("POST", "/checkpoint")).status).toBe(200);
  const paused = new SandboxClient(a, here.id);
  const list = async (): Promise<unknown> =>
    (await paused.call<{ items: unknown }>("GET", "/processes?saved=true")).body.items;
  expect(await list()).toMatchObject(known);
  expect(text(await paused.output(began.id, "?offset=0&saved=true"))).toBe("ready\nlate\n");
  expect(text(await paused.output(began.id, "?offset=6&saved=true"))).toBe("late\n");
  const end = (await paused.output(ended.id, "?offset=0&saved=true")).at(-1);
  expect(end).toMatchObject({ event: "exit", exit_code: 0, offset: 5 });
  expect((await paused.call("GET", "/processes/none?saved=true")).status).toBe(404);
  // Clients that did not ask for it resume the sandbox.
  for (const path of ["", `/${began.id}`, `/${began.id}/output`, `/${began.id}/output?saved=true&follow=true`]) {
    expect((await paused.call("GET", `/processes${path}`)).status).toBe(409);
  }
  // Looking has not resumed it.
  expect((await paused.call<{ state: string }>("GET", "")).body.state).toBe("stored");

  await resume(paused);
  expect(await paused.processes()).toMatchObject(known);
});
