import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { HttpClient } from "../../gateway/http/support.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

test.each([
  ["whose time is over", { ttl: "1s" }],
  ["that nobody uses", { idle_timeout: 0.5 }],
])("a sandbox %s and that cannot be saved is let alone for longer each time", async (_title, body) => {
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
