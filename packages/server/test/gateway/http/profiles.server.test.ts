import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError, type SandboxRecord, type SnapshotInfo } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { ExtensionBackend } from "../../../src/backends/extension/extension-backend.ts";
import { SaasStubExtension } from "../../../src/backends/saas-stub/saas-stub-extension.ts";
import { SecretSources } from "../../../src/secrets/secret-sources.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { catalogOf } from "../../profiles/catalog-of.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

const WORK = {
  name: "profile.work",
  backends: ["fake"],
  isolation: "none",
  ttl: { default: "1h", max: "2h" },
  labels: { team: "ml" },
  setup: ["echo ready > /workspace/ready"],
  secret_refs: { TOKEN: "github" },
};

async function startWithProfiles(...profiles: object[]): Promise<TestServer> {
  const secrets = new SecretSources({
    definitions: { github: { environment: "GITHUB" } },
    environment: { GITHUB: "s3cret-value" },
    warn: () => {},
  });
  const stub = new ExtensionBackend(new SaasStubExtension());
  return startTestServer({ profiles: catalogOf(...profiles), secrets, moreBackends: [stub] });
}

async function outputOf(server: TestServer, id: string, shell: string): Promise<string> {
  const http = new HttpClient(server);
  return (await http.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/exec`, { shell })).body.stdout;
}

test("a profile fills in missing settings; its setup has run; its limit applies", async () => {
  const server = await startWithProfiles(WORK);
  const http = new HttpClient(server);
  const made = await http.create({ profile: "profile.work", labels: { mine: "1" } });
  expect(made).toMatchObject({ profile: "profile.work", labels: { team: "ml", mine: "1" } });
  expect(made.expires_at).not.toBeNull();
  expect(await outputOf(server, made.id, "cat /workspace/ready")).toBe("ready\n");
  const tooLong = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { profile: "profile.work", ttl: "3h" });
  expect([tooLong.status, tooLong.body.error.code]).toEqual([422, "ttl_too_long"]);
  const extended = await http.call<ErrorAnswer>("PATCH", `/v1/sandboxes/${made.id}/ttl`, { duration: "3h" });
  expect([extended.status, extended.body.error.code]).toEqual([422, "ttl_too_long"]);
  const listed = await http.call<{ items: { name: string }[] }>("GET", "/v1/profiles");
  expect(listed.body.items.map(({ name }) => name)).toEqual(["profile.work"]);
});

test("the lifetime limit of a profile applies to restored and forked sandboxes too", async () => {
  const http = new HttpClient(await startWithProfiles(WORK));
  const { id } = await http.create({ profile: "profile.work", ttl: "2h" });
  const captured = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`);
  const hoursOf = ({ expires_at }: SandboxRecord): number =>
    Math.round((Date.parse(expires_at ?? "") - Date.now()) / 3_600_000);
  for (const ttl of ["3h", "2h", undefined]) {
    const body = ttl === undefined ? {} : { ttl };
    const path = `/v1/snapshots/${captured.body.id}/restore`;
    const restored = await http.call<SandboxRecord & ErrorAnswer>("POST", path, body);
    const forked = await http.call<{ items: SandboxRecord[] } & ErrorAnswer>("POST", `/v1/sandboxes/${id}/fork`, body);
    if (ttl === "3h") {
      expect([restored.body.error.code, forked.body.error.code]).toEqual(["ttl_too_long", "ttl_too_long"]);
    } else {
      const hours = ttl === undefined ? 1 : 2;
      expect([restored.body, ...forked.body.items].map(hoursOf)).toEqual([hours, hours]);
    }
  }
  expect((await http.call<{ items: unknown[] }>("GET", "/v1/snapshots")).body.items).toHaveLength(3);
});

test("a sandbox restored from a deleted profile has the lifetime of the request", async () => {
  const first = await startWithProfiles({ ...WORK, secret_refs: {} });
  const { id } = await new HttpClient(first).create({ profile: "profile.work" });
  const { body } = await new HttpClient(first).call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`);
  const second = await startTestServer({ store: first.storeFolder ?? null });
  const restored = await new HttpClient(second).call("POST", `/v1/snapshots/${body.id}/restore`, {});
  expect(restored).toMatchObject({ status: 201, body: { profile: "profile.work", expires_at: null } });
});

test("a failed setup fails the creation with its output, and leaves nothing", async () => {
  const server = await startWithProfiles({ ...WORK, setup: ["echo no luck", "exit 3"] });
  const http = new HttpClient(server);
  const failed = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { profile: "profile.work" });
  expect([failed.status, failed.body.error.code]).toEqual([500, "sandbox_failed"]);
  expect(failed.body.error.details).toMatchObject({ command: "exit 3", exit_code: 3 });
  expect((await http.call<{ items: unknown[] }>("GET", "/v1/sandboxes")).body.items).toEqual([]);
});

test("a secret is available inside, even after a resume, and never stored, listed or logged", async () => {
  const server = await startWithProfiles(WORK);
  const http = new HttpClient(server);
  const { id } = await http.create({ profile: "profile.work" });
  expect(await outputOf(server, id, "echo $TOKEN")).toBe("s3cret-value\n");
  await http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/checkpoint`);
  const head = await readFile(join(server.storeFolder ?? "", id, "metadata.json"), "utf8");
  expect(head).toContain("github");
  expect(head).not.toContain("s3cret-value");
  await http.call("POST", `/v1/sandboxes/${id}/resume`);
  expect(await outputOf(server, id, "echo $TOKEN")).toBe("s3cret-value\n");
  const told = [await http.get(id), await http.call("GET", "/v1/events"), await http.call("GET", "/v1/operations")];
  expect(JSON.stringify(told)).not.toContain("s3cret-value");
});

test("an unavailable secret fails the creation, and is named", async () => {
  const server = await startWithProfiles({ ...WORK, secret_refs: { TOKEN: "absent" } });
  const failed = await new HttpClient(server).call<ErrorAnswer>("POST", "/v1/sandboxes", { profile: "profile.work" });
  expect([failed.status, failed.body.error.code]).toEqual([503, "secret_unavailable"]);
  expect(failed.body.error.message).toContain("absent");
});

describe("a profile that names several backends", () => {
  const ROUTED = {
    name: "profile.routed",
    backends: ["saas-stub", "daytona", "fake"],
    isolation: "none",
    placement: { price_per_hour: "0.25", currency: "EUR" },
  };

  test.each([
    ["explicit", "saas-stub", "the first that is available"],
    ["prefer-self-hosted", "fake", "the first self-hosted one that is available"],
    ["lowest-cost", "saas-stub", "the cheapest at 0.25 EUR per hour"],
  ])("%s picks %s, and the record says why", async (strategy, backend, reason) => {
    const server = await startWithProfiles({ ...ROUTED, strategy });
    const http = new HttpClient(server);
    const { id } = await http.create({ profile: "profile.routed" });
    const { placement, backend: made } = await http.get(id);
    expect(made).toBe(backend);
    expect(placement).toMatchObject({ backend, strategy, reason });
    const passedOver = placement?.passed_over.map(({ backend: other }) => other);
    expect(new Set([backend, ...(passedOver ?? [])])).toEqual(new Set(["saas-stub", "daytona", "fake"]));
    expect(placement?.passed_over).toContainEqual({ backend: "daytona", reason: "this server does not have it" });
  });

  test("an unhealthy backend is skipped", async () => {
    const server = await startWithProfiles({ ...ROUTED, strategy: "prefer-self-hosted" });
    server.backend.faults.set("probe", { error: new SandboxerError("backend_unavailable", "no engine") });
    const http = new HttpClient(server);
    const made = await http.create({ profile: "profile.routed" });
    expect(made.backend).toBe("saas-stub");
    expect(made.placement?.passed_over).toContainEqual({ backend: "fake", reason: "not available: no engine" });
  });

  test("a stub's snapshot is a record, and its restore a fresh endpoint", async () => {
    const server = await startWithProfiles(ROUTED);
    const http = new HttpClient(server);
    const { id } = await http.create({ profile: "profile.routed", backend: "saas-stub" });
    const taken = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`);
    expect(taken.body).toMatchObject({ mode: "metadata", kind: "stub-metadata", backend: "saas-stub" });
    const restored = await http.call<SandboxRecord>("POST", `/v1/snapshots/${taken.body.id}/restore`);
    expect(restored.status).toBe(201);
    expect(restored.body).toMatchObject({ backend: "saas-stub", origin: { snapshot_id: taken.body.id } });
    const refused = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/exec`, { shell: "true" });
    expect([refused.status, refused.body.error.code]).toEqual([422, "not_supported"]);
  });

  test("a restore goes where another profile says, and never where a client says", async () => {
    const other = { ...ROUTED, name: "profile.other", placement: { price_per_hour: "0.5", region: "there" } };
    const server = await startWithProfiles(ROUTED, other);
    const http = new HttpClient(server);
    const { id } = await http.create({ profile: "profile.routed", backend: "saas-stub" });
    const { body: taken } = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`);
    const path = `/v1/snapshots/${taken.id}/restore`;
    const restored = await http.call<SandboxRecord>("POST", path, { profile: "profile.other" });
    expect(restored.body).toMatchObject({ profile: "profile.other", backend: "saas-stub" });
    const { facts } = await server.live(restored.body.id);
    expect(facts.spec.placement).toEqual({ price_per_hour: "0.5", region: "there" });
    expect((await http.call("POST", path, { placement: { host: "elsewhere.example" } })).status).toBe(400);
    expect((await http.call("POST", path, { profile: "profile.none" })).status).toBe(404);
  });
});
