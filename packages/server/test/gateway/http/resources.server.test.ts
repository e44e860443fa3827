import { expect, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import type { ResourceLimits } from "../../../src/manager/resource-limits.ts";
import { ProfileCatalog } from "../../../src/profiles/profile-catalog.ts";
import { profileSchema } from "@sandboxer/protocol";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const HERE = { memoryBytes: 8 * GIB, cpus: 4, processes: 4096, diskBytes: 20 * GIB };
const LIMITS: ResourceLimits = { everywhere: {}, here: HERE, totalMemoryBytes: 10 * GIB };
const GREEDY = { memory_mb: 1_048_576, cpus: 1024, processes: 32_768, disk_mb: 16_777_216 };

async function start(options: Parameters<typeof startTestServer>[0] = {}) {
  const server = await startTestServer({ resourceLimits: LIMITS, ...options });
  return { server, http: new HttpClient(server) };
}

async function refusal(http: HttpClient, path: string, body: object): Promise<[number, string, string]> {
  const { status, body: answer } = await http.call<ErrorAnswer>("POST", path, body);
  return [status, answer.error?.code, answer.error?.message];
}

test("a create above the maximum of one sandbox is refused, with the requested value and the maximum", async () => {
  const { server, http } = await start();
  const [status, code, message] = await refusal(http, "/v1/sandboxes", { resources: GREEDY });
  expect([status, code]).toEqual([422, "not_supported"]);
  expect(message).toContain("1024 GiB of memory (at most 8 GiB of memory)");
  expect(message).toContain("1024 CPUs (at most 4 CPUs)");
  expect(message).toContain("32768 processes (at most 4096 processes)");
  expect(message).toContain("16384 GiB of disk (at most 20 GiB of disk)");
  expect(server.backend.runningCount).toBe(0);
  await http.create({ resources: { memory_mb: 8192, cpus: 4, processes: 4096, disk_mb: 20_480 } });
});

test("the same holds over WebSocket, by a profile and by a key, and the sandbox of the key stays", async () => {
  const profile = profileSchema.parse({ name: "profile.large", backends: ["fake"], resources: { memory_mb: 9000 } });
  const { server, http } = await start({
    profiles: new ProfileCatalog([{ profile, file: "test", bundled: false, overrides: undefined }]),
  });
  const client = server.connect("/create").send({ resources: { cpus: 5 } });
  expect(await client.untilClosed()).toContain("CREATION_ERROR");
  expect(await client.event("error")).toMatchObject({ code: "not_supported" });
  expect((await refusal(http, "/v1/sandboxes", { profile: "profile.large" }))[1]).toBe("not_supported");
  const acquired = await http.call<{ id: string }>("POST", "/v1/sandboxes/acquire", { key: "k" });
  const asked = { key: "k", resources: { memory_mb: 9000 } };
  expect((await refusal(http, "/v1/sandboxes/acquire", asked))[1]).toBe("not_supported");
  expect(await http.get(acquired.body.id)).toMatchObject({ state: "running" });
});

test("a paused sandbox and a snapshot that need more than this server allows are refused, and stay", async () => {
  const large = await startTestServer();
  const { id } = await new HttpClient(large).create({ resources: { memory_mb: 9000 }, enable_checkpoint: true });
  const snapshot = await new HttpClient(large).call<{ id: string }>("POST", `/v1/sandboxes/${id}/snapshot`, {});
  await new HttpClient(large).call("POST", `/v1/sandboxes/${id}/checkpoint`, {});
  const { http } = await start({ store: large.storeFolder ?? null });
  expect((await refusal(http, `/v1/sandboxes/${id}/resume`, {}))[1]).toBe("not_supported");
  expect((await refusal(http, `/v1/snapshots/${snapshot.body.id}/restore`, {}))[1]).toBe("not_supported");
  expect(await http.get(id)).toMatchObject({ state: "stored" });
  const { status } = await new HttpClient(large).call("POST", `/v1/sandboxes/${id}/resume`, {});
  expect(status).toBe(200);
});

test("the total requested memory is limited; the refusal has the reserved and the free memory", async () => {
  const { http } = await start();
  const { id } = await http.create({ resources: { memory_mb: 8192 } });
  const [status, code, message] = await refusal(http, "/v1/sandboxes", { resources: { memory_mb: 4096 } });
  expect([status, code]).toEqual([429, "limit_reached"]);
  expect(message).toContain("4 GiB of memory; 8 GiB of 10 GiB are reserved");
  expect(message).toContain("2 GiB are free");
  expect((await refusal(http, `/v1/sandboxes/${id}/fork`, { count: 1 }))[1]).toBe("limit_reached");
  await http.create({ resources: { memory_mb: 2048 } });
  expect((await refusal(http, "/v1/sandboxes", { resources: { memory_mb: 16 } }))[1]).toBe("limit_reached");
  // Sandboxes that request no memory share the rest.
  await http.create();
});

test("a paused sandbox releases its memory", async () => {
  const { http } = await start();
  const { id } = await http.create({ resources: { memory_mb: 8192 }, enable_checkpoint: true });
  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, {});
  const { id: second } = await http.create({ resources: { memory_mb: 4096 } });
  expect((await refusal(http, `/v1/sandboxes/${id}/resume`, {}))[1]).toBe("limit_reached");
  await http.call("DELETE", `/v1/sandboxes/${second}`);
  expect((await http.call("POST", `/v1/sandboxes/${id}/resume`, {})).status).toBe(200);
});

test("the machine's maxima are for sandboxes on it, and the operator's for all", async () => {
  const elsewhere = new FakeBackend({ name: "elsewhere", capabilities: { selfHosted: false } });
  const limits = { ...LIMITS, everywhere: { cpus: 4 } };
  const { http } = await start({ moreBackends: [elsewhere], resourceLimits: limits });
  await http.create({ backend: "elsewhere", resources: { memory_mb: (11 * GIB) / MIB } });
  const resources = { cpus: 5 };
  expect((await refusal(http, "/v1/sandboxes", { backend: "elsewhere", resources }))[1]).toBe("not_supported");
});
