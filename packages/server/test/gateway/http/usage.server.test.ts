import type { SandboxUsage } from "@sandboxer/protocol";
import { expect, test, vi } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

interface Listed {
  readonly items: readonly Pick<SandboxUsage, "sandbox_id" | "used">[];
}

test("the usage of a sandbox has its limits, and only newer points", async () => {
  const http = new HttpClient(await startTestServer());
  const { id } = await http.create({ resources: { memory_mb: 64, cpus: 2 } });
  const usage = async (query = ""): Promise<SandboxUsage> =>
    (await http.call<SandboxUsage>("GET", `/v1/sandboxes/${id}/usage${query}`)).body;
  await vi.waitFor(async () => expect((await usage()).used.time.length).toBeGreaterThanOrEqual(2), { timeout: 60_000 });
  const { used, limits } = await usage();
  expect(limits).toEqual({ cpus: 2, memory_bytes: 64 * 1024 ** 2, disk_bytes: null });
  const lengths = Object.values(used).map((column) => column.length);
  expect(new Set(lengths).size).toBe(1);
  expect(used.cpus[0]).toBeNull();
  expect(used.cpus[1]).toBeGreaterThanOrEqual(0);
  const newer = await usage(`?since=${used.time[0]}`);
  expect(newer.used.time[0]).toBe(used.time[1]);
  // The rate of the first one that is newer is known all the same.
  expect(newer.used.cpus[0]).not.toBeNull();

  const { items } = (await http.call<Listed>("GET", "/v1/usage?points=1")).body;
  expect(items.map(({ sandbox_id, used: { time } }) => [sandbox_id, time.length])).toEqual([[id, 1]]);
  expect(items[0]?.used.cpus[0]).not.toBeNull();
  expect((await http.call<Listed>("GET", "/v1/usage?since=9999999999")).body).toEqual({ items: [] });
});

test("a sandbox on another server names its location; an invalid query is refused", async () => {
  const http = new HttpClient(await startTestServer());
  const { status, body } = await http.call<ErrorAnswer>("GET", "/v1/sandboxes/nobody/usage");
  expect([status, body.error.code]).toEqual([404, "sandbox_not_found"]);
  for (const query of ["points=0", "points=x", "since=yesterday"]) {
    expect((await http.call("GET", `/v1/usage?${query}`)).status).toBe(400);
  }
});
