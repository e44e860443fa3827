import { expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { ProcessSocket } from "../http/processes/process-socket.ts";
import { ticking } from "../http/processes/support.ts";
import { call, pair, RELAY } from "./support.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const MEGABYTE = 1024 * 1024;

test("output and stdin of a process go through a server that does not have it", async () => {
  const { box, url } = await pair();
  const { id } = await box.spawn({ shell: "while read x; do echo got $x; done" });
  const socket = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow&offset=0`);
  // Before it is open: the bytes come right behind the request.
  socket.send(Buffer.from("one\n")).send(Buffer.from("two\n"));
  await socket.when(() => socket.text === "got one\ngot two\n", "answers");
  socket.send({ action: "stdin_close" });
  expect(await socket.event("exit")).toMatchObject({ exit_code: 0 });
  expect(await socket.closed).toBe(1000);
});

test("a client that forbids relaying, or whose owner is unreachable, gets the sandbox's location", async () => {
  const { box, url, owner } = await pair();
  const { id } = await box.spawn({ shell: "read x" });
  const socket = new ProcessSocket(`${url}/processes/${id}/attach?relay=never`);
  expect(await socket.closed).toBe(4000);
  expect(socket.events).toMatchObject([{ event: "error", code: "lease_held" }]);
  const away = await startTestServer({ store: owner.storeFolder ?? null, advertiseUrl: "http://127.0.0.1:9" });
  await call("POST", `${away.httpUrl}/v1/sandboxes/${box.id}/resume`);
  const unreachable = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow`);
  await expect(unreachable.opened).rejects.toThrow("503");
});

test("a token opens the process of its sandbox through another server, and a wrong one is not shown to the owner", async () => {
  const owner = await startTestServer({ apiKeys: ["k"] });
  const asked = await startTestServer({ store: owner.storeFolder ?? null, apiKeys: ["k"] });
  const made = await call("POST", `${owner.httpUrl}/v1/sandboxes`, {}, { authorization: "Bearer k" });
  const box = `/v1/sandboxes/${made.body.id}`;
  const started = await call(
    "POST",
    `${owner.httpUrl}${box}/exec`,
    { shell: "echo hi; read x", wait: false },
    { authorization: "Bearer k" },
  );
  const attach = `${asked.httpUrl}${box}/processes/${started.body.id}/attach?relay=allow`;
  const right = new ProcessSocket(`${attach}&sandbox_token=${made.body.token}`);
  await right.when(() => right.text === "hi\n", "output");
  const connections = owner.sockets.size;
  await expect(new ProcessSocket(attach).opened).rejects.toThrow("401");
  const wrong = new ProcessSocket(`${attach}&sandbox_token=wrong`);
  await wrong.closed;
  expect(wrong.events).toMatchObject([{ event: "error", code: "permission_denied" }]);
  expect(owner.sockets.size).toBe(connections);
});

test("a reader that stops makes the process wait, through both servers", async () => {
  const { box, url } = await pair();
  const { id } = await box.spawn({ shell: "yes 0123456 | head -c 8000000; echo end" });
  const socket = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow&offset=0`, { acknowledge: false });
  await socket.when(() => socket.length >= 256 * 1024, "a window of output");
  socket.socket.pause();
  socket.acknowledge();
  let end = 0;
  await eventually("the process waits", async () => {
    const before = end;
    end = (await box.process(id)).output_end;
    await meanwhile(100);
    return end > 0 && end === before;
  });
  expect(end).toBeLessThan(4 * MEGABYTE);
  const rest = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow&offset=${socket.offset}`);
  await rest.event("exit");
  expect(socket.length + rest.length).toBe(8_000_004);
});

test("both ends close together", async () => {
  const { box, url, owner, asked } = await pair();
  const { id } = await box.spawn({ shell: ticking });
  const idle = owner.sockets.size;
  const left = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow`);
  await left.event("attached");
  left.socket.terminate();
  await eventually("the owner has noticed", () => owner.sockets.size <= idle);
  const cut = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow`);
  await cut.when(() => cut.length > 100, "ticks");
  for (const socket of owner.sockets) socket.resetAndDestroy();
  expect(await cut.closed).toBe(1006);
  const ended = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow`);
  await ended.event("attached");
  await asked.drain();
  expect(await ended.closed).toBe(1006);
  await eventually("the owner has noticed", () => owner.sockets.size <= idle);
});

test("relayed sockets count among the clients", async () => {
  const { box, url } = await pair({ maxClients: 1 });
  const { id } = await box.spawn({ shell: ticking });
  const first = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow`);
  await first.event("attached");
  await expect(new ProcessSocket(`${url}/processes/${id}/attach?relay=allow`).opened).rejects.toThrow("503");
});

test("a moving process is followed through the same server, and no byte is missing or repeated", async () => {
  const { box, url, asked, owner } = await pair();
  const { id } = await box.spawn({ shell: ticking });
  const seen: Buffer[] = [];
  let offset = 0;
  for (let move = 0; move < 4; move += 1) {
    const socket = new ProcessSocket(`${url}/processes/${id}/attach?relay=allow&offset=${offset}`);
    await socket.when(() => socket.length > 200, "ticks");
    const to = move % 2 === 0 ? asked : owner;
    const moved = await call("POST", `${url}/handoff`, { to: to.httpUrl }, RELAY);
    expect(moved.status).toBe(200);
    const moving = await socket.event("moving");
    expect(await socket.closed).toBe(1012);
    expect([moving.offset, socket.gapBytes]).toEqual([socket.offset, 0]);
    seen.push(...socket.received);
    offset = socket.offset ?? 0;
  }
  const ticks = Buffer.concat(seen).toString("utf8").split("\n").slice(0, -1);
  expect(ticks).toEqual(ticks.map((_, index) => `tick ${index + 1}`));
});
