import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { ProcessSocket } from "../../gateway/http/processes/process-socket.ts";
import { SandboxClient } from "../../gateway/http/processes/support.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { absentableStore } from "../support/absentable-store.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

/** A sandbox at a server whose store has gone away, and the way to bring that back. */
async function frozenSandbox(before: (box: SandboxClient) => Promise<void> = async () => {}) {
  const store = absentableStore();
  const server = await startTestServer({ leaseTtlMs: 1_000, wrapStore: store.wrapStore });
  const box = await SandboxClient.create(server);
  await before(box);
  store.away = true;
  const { ownership } = server.durable;
  await eventually("it is frozen", () => ownership.instances.frozen);
  const thaw = async (): Promise<void> => {
    store.away = false;
    await eventually("it goes on", () => !ownership.instances.frozen);
  };
  return { server, box, thaw };
}

test("calls on a frozen sandbox get the reason, and may be tried again", async () => {
  const { box, thaw } = await frozenSandbox();
  const calls = [
    box.call("POST", "/exec", { shell: "echo on" }),
    box.call("GET", "/processes"),
    box.call("GET", "/files?path=/workspace/x"),
    box.call("PATCH", "", { name: "other" }),
    box.call("POST", "/resume"),
  ];
  for (const { status, body } of await Promise.all(calls)) {
    expect([status, body.error.code, body.error.retryable]).toEqual([503, "store_unavailable", true]);
    expect(body.error.message).toContain("cannot renew its lease");
  }
  await thaw();
  expect(await box.exec({ shell: "echo on" })).toMatchObject({ stdout: "on\n" });
});

test("a command whose caller left before the thaw is not run", async () => {
  const { server, box, thaw } = await frozenSandbox();
  // On a connection of its own, by which the server's end is found.
  const body = JSON.stringify({ shell: "touch /workspace/ran", detach: true });
  const head = ["Host: localhost", "Content-Type: application/json", `Content-Length: ${body.length}`];
  const { hostname, port, pathname } = new URL(`${box.url}/exec`);
  const caller = connect(Number(port), hostname).on("error", () => {});
  const call = [`POST ${pathname} HTTP/1.1`, ...head, "", body].join("\r\n");
  caller.write(call);
  const socket = (): Socket | undefined =>
    [...server.sockets].find(({ remotePort }) => remotePort === caller.localPort);
  await eventually("the server has read the call", () => (socket()?.bytesRead ?? 0) >= call.length);
  caller.destroy();
  await eventually("the server has seen that the caller is gone", () => socket() === undefined);
  await thaw();
  // A waiting call checks the clock now and then.
  await meanwhile(200);
  expect(await box.exec({ shell: "ls /workspace" })).toMatchObject({ stdout: "" });
});

test("a client that attaches to a process waits for the thaw, however long it takes", async () => {
  let id = "";
  const { box, thaw } = await frozenSandbox(async (running) => {
    ({ id } = await running.spawn({ shell: "echo one; read x" }));
  });
  const socket = new ProcessSocket(`${box.url}/processes/${id}/attach?offset=0`);
  // Longer than any other call.
  expect(await box.call("GET", "/processes")).toMatchObject({ status: 503 });
  await thaw();
  socket.send(Buffer.from("\n"));
  expect(await socket.event("exit")).toMatchObject({ exit_code: 0 });
  expect(Buffer.concat(socket.received).toString("utf8")).toBe("one\n");
});
