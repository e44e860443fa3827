import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { HttpClient } from "../../gateway/http/support.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

test.each([
  ["that has expired", { ttl: "1s" }],
  ["that nobody uses", { idle_timeout: 0.5 }],
])("a sandbox %s and that cannot be saved is tried again after longer and longer waits", async (_title, body) => {
  const server = await startTestServer();
  const { id } = await new HttpClient(server).create(body);
  const { handle } = await server.live(id);
  const snapshot = handle.snapshot.bind(handle);
  const triedMs: number[] = [];
  handle.snapshot = () => {
    triedMs.push(performance.now());
    return Promise.reject(new SandboxerError("no_space", "full"));
  };
  await eventually("it was tried three times", () => triedMs.length >= 3);
  handle.snapshot = snapshot;
  // At least: they may be longer on a busy machine, never shorter.
  const [first = 0, second = 0, third = 0] = triedMs;
  expect(second - first).toBeGreaterThanOrEqual(1_000);
  expect(third - second).toBeGreaterThanOrEqual(2_000);
});

test("a record lists the reasons why a sandbox is not idle", async () => {
  const http = new HttpClient(await startTestServer());
  const { id } = await http.create();
  expect(await http.get(id)).toMatchObject({ state: "running", busy_with: [] });
  const started = await http.call<{ id: string; pid: number }>("POST", `/v1/sandboxes/${id}/exec`, {
    command: ["sleep", "300"],
    detach: true,
  });
  const waiting = http.call("POST", `/v1/sandboxes/${id}/exec`, { shell: "read x" });
  await eventually("both run", async () => ((await http.get(id)).busy_with ?? []).includes("an exec call"));
  const { busy_with } = await http.get(id);
  expect(busy_with).toEqual([
    `process ${started.body.pid}: sleep 300`,
    expect.stringMatching(/read x$/),
    "an exec call",
  ]);
  expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
  await waiting;
  expect(await http.get(id)).toMatchObject({ state: "stored", busy_with: null });
});
