import type { EventRecord } from "@sandboxer/protocol";
import { expect, test, vi } from "vitest";
import { startTestServer, type TestServer } from "../websocket/support/test-server.ts";
import { HttpClient } from "./support.ts";

/** What is told of a sandbox, of one kind. */
async function told(server: TestServer, id: string, type: string): Promise<(EventRecord["data"] & { type: string })[]> {
  const path = `/v1/events?sandbox_id=${id}&type=${type}&limit=1000`;
  const { body } = await new HttpClient(server).call<{ items: EventRecord[] }>("GET", path);
  return body.items.map((event) => ({ ...event.data, type: event.type }));
}

test("executions are told, however they were started", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { client, id } = await server.create();
  client.send({ language: "bash", code: "exit 3" });
  await client.until("EXECUTION_DONE");
  await http.call("POST", `/v1/sandboxes/${id}/exec`, { command: ["true", "an argument"] });
  await http.call("POST", `/v1/sandboxes/${id}/exec`, { language: "python", code: "print(1)" });
  await vi.waitFor(async () => expect(await told(server, id, "execution")).toHaveLength(6));
  const events = await told(server, id, "execution");
  expect(events.filter(({ type }) => type === "execution.started")).toMatchObject([
    { kind: "execution", command: "exit 3", language: "bash" },
    { kind: "process", command: "true an argument", language: null, pty: false, detached: false, omitted: 0 },
    { kind: "process", command: "print(1)", language: "python" },
  ]);
  expect(events.filter(({ type }) => type === "execution.ended")).toMatchObject([
    { exit_code: 3, outcome: "exited", signal: null, timed_out: false },
    { exit_code: 0 },
    { exit_code: 0 },
  ]);
  const ids = events.map(({ process_id }) => process_id);
  expect(new Set(ids).size).toBe(3);
});

test("one that goes on elsewhere leaves here, and is continued there until its end", async () => {
  const first = await startTestServer();
  const second = await startTestServer({ store: first.storeFolder ?? null });
  const [here, there] = [new HttpClient(first), new HttpClient(second)];
  const { id } = await here.create({ enable_sandbox_handoff: true });
  const started = { shell: "read line", wait: false };
  const { body } = await here.call<{ id: string }>("POST", `/v1/sandboxes/${id}/exec`, started);
  await there.call("POST", `/v1/sandboxes/${id}/resume`);
  await vi.waitFor(async () => expect(await told(second, id, "execution")).toHaveLength(1));
  expect(await told(first, id, "execution.ended")).toMatchObject([{ outcome: "left", exit_code: null }]);
  await there.call("POST", `/v1/sandboxes/${id}/processes/${body.id}/signal`, { signal: "SIGKILL" });
  await vi.waitFor(async () => expect(await told(second, id, "execution")).toHaveLength(2));
  expect(await told(second, id, "execution")).toMatchObject([
    { type: "execution.continued", process_id: body.id },
    { type: "execution.ended", process_id: body.id, signal: "SIGKILL", elapsed_ms: null },
  ]);
});
