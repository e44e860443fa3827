import type { Carried, CreatedSandboxRecord, SandboxRecord } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol";
import { describe, expect, test, vi } from "vitest";
import { FakeBackend, type FakeBackendOptions } from "../../../src/backends/fake/index.ts";
import { SecretSources } from "../../../src/secrets/secret-sources.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { catalogOf } from "../../profiles/catalog-of.ts";
import { SnapshotClient } from "./snapshot-client.ts";

type Moved = CreatedSandboxRecord & { readonly carried: Carried };

interface Pair {
  readonly api: SnapshotClient<TestServer>;
  readonly other: FakeBackend;
}

async function startPair(backend: FakeBackendOptions = {}, server: TestServerOptions = {}): Promise<Pair> {
  const other = new FakeBackend({ name: "other", loads: [], ...backend });
  return { api: new SnapshotClient(await startTestServer({ moreBackends: [other], ...server })), other };
}

async function list(api: SnapshotClient<TestServer>): Promise<SandboxRecord[]> {
  return (await api.call<{ items: SandboxRecord[] }>("GET", "/v1/sandboxes")).body.items;
}

const SETTINGS = { name: "web", labels: { a: "1" }, key: "my-key", ttl: "1h", idle_timeout: 77, env: { X: "y" } };

describe("move", () => {
  test("the sandbox keeps its identity on another backend, and the copy here is ended", async () => {
    const { api, other } = await startPair();
    const old = await api.http.create(SETTINGS);
    await api.sandbox(old.id).exec({ shell: "echo here > /workspace/mark" });
    const { status, body } = await api.call<Moved>("POST", `/v1/sandboxes/${old.id}/move`, { backend: "other" });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id: old.id,
      epoch: (old.epoch ?? 0) + 1,
      name: "web",
      labels: { a: "1" },
      key: "my-key",
      expires_at: old.expires_at,
      idle_timeout: 77,
      backend: "other",
      state: "running",
      created_at: old.created_at,
      carried: { from: "fake", backend: "other", memory: "lost", files: { count: 1 } },
    });
    expect(await api.server.attach(old.id, `?sandbox_token=${old.token}`).outcome()).toEqual(["RUNNING"]);
    expect((await api.sandbox(body.id).exec({ shell: "cat /workspace/mark; echo $X" })).stdout).toBe("here\ny\n");
    expect((await list(api)).filter(({ state }) => state !== "destroyed").map(({ id }) => id)).toEqual([body.id]);
    expect([api.server.backend.runningCount, other.runningCount]).toEqual([0, 1]);
    expect((await api.list()).items).toMatchObject([{ reason: "move", mode: "workspace", sandbox_id: old.id }]);
    expect(api.server.problems).toEqual([]);
  });

  test("the key finds it there", async () => {
    const { api } = await startPair();
    const body = { key: "k", env: { X: "y" } };
    const { id } = (await api.call<{ id: string }>("POST", "/v1/sandboxes/acquire", body)).body;
    const moved = (await api.call<Moved>("POST", `/v1/sandboxes/${id}/move`, { backend: "other" })).body;
    const again = await api.call<{ id: string; tier: string }>("POST", "/v1/sandboxes/acquire", {
      ...body,
      backend: "other",
    });
    expect(again.body).toMatchObject({ id: moved.id, tier: "reattached" });
  });

  test("on a backend that cannot save running sandboxes it is not saved, and the response says so", async () => {
    const { api } = await startPair({ capabilities: { snapshot: "filesystem", limits: false, users: false } });
    const old = await api.http.create({ resources: { processes: 20 }, user: "root" });
    expect(old.flags.enable_checkpoint).toBe(true);
    const { body } = await api.call<Moved>("POST", `/v1/sandboxes/${old.id}/move`, { backend: "other" });
    expect(body).toMatchObject({ flags: { enable_checkpoint: false }, carried: { limits: "the backend has none" } });
    expect(body.carried.notes.join(" ")).toMatch(/no checkpoints.*as one user, not as root/);
    // And back to where it can be saved.
    const back = await api.call<Moved>("POST", `/v1/sandboxes/${body.id}/move`, { backend: "fake" });
    expect(back.body).toMatchObject({ backend: "fake", flags: { enable_checkpoint: true } });
  });

  test("is refused before anything is done", async () => {
    const { api, other } = await startPair({ capabilities: { files: false } });
    const box = await SandboxClient.create(api.server);
    const attempts = ["other", "fake", "none"].map((backend) => box.call("POST", "/move", { backend }));
    const codes = (await Promise.all(attempts)).map(({ status, body }) => [status, body.error.code]);
    expect(codes).toEqual([
      [422, "image_incompatible"],
      [400, "bad_request"],
      [400, "bad_request"],
    ]);
    const { id } = await api.server.create();
    expect(await api.refused("POST", `/v1/sandboxes/${id}/move`, { backend: "other" })).toEqual([
      409,
      "sandbox_in_use",
    ]);
    expect((await api.list()).items).toEqual([]);
    expect(other.runningCount).toBe(0);
  });

  test("goes only where the profile allows, and so do the secrets", async () => {
    const profile = { isolation: "none", secret_refs: { TOKEN: "github" } } as const;
    const profiles = catalogOf(
      { ...profile, name: "profile.here", backends: ["fake"] },
      { ...profile, name: "profile.both", backends: ["fake", "other"] },
    );
    const secrets = new SecretSources({
      definitions: { github: { environment: "GITHUB" } },
      environment: { GITHUB: "s3cret-value" },
      warn: () => {},
    });
    const { api, other } = await startPair({}, { profiles, secrets });
    const box = await SandboxClient.create(api.server, { profile: "profile.here" });
    const refused = await box.call("POST", "/move", { backend: "other" });
    expect([refused.status, refused.body.error.code]).toEqual([422, "not_supported"]);
    expect(refused.body.error.message).toMatch(/profile.here does not support the backend "other"/);
    expect((await api.list()).items).toEqual([]);
    const { id } = await api.take(box.id, { mode: "workspace" });
    const explained = await api.call<Carried>("GET", `/v1/snapshots/${id}/explain?backend=other`);
    expect(explained.body).toMatchObject({ loadable: false, secrets: ["github"] });
    const path = `/v1/snapshots/${id}/restore`;
    expect(await api.refused("POST", path, { backend: "other" })).toEqual([422, "not_supported"]);
    expect(other.runningCount).toBe(0);
    const moved = await box.call<Moved>("POST", "/move", { backend: "other", profile: "profile.both" });
    expect(moved.body).toMatchObject({ profile: "profile.both", carried: { secrets: ["github"] } });
    expect((await api.sandbox(moved.body.id).exec({ shell: "echo $TOKEN" })).stdout).toBe("s3cret-value\n");
    const back = { backend: "other", profile: "profile.here" };
    expect(await api.refused("POST", path, back)).toEqual([422, "not_supported"]);
  });

  const broken = new SandboxerError("no_space", "The disk is full.");

  test.each(["capture", "announcement", "acquire", "unpack", "ownership"])(
    "a failure at the step %s leaves the old one serving, and nothing else",
    async (step) => {
      const { api, other } = await startPair();
      const { backend, durable } = api.server;
      const box = await SandboxClient.create(api.server, { key: "k" });
      await box.exec({ shell: "echo here > /workspace/mark" });
      const { handle } = await api.server.live(box.id);
      const fails = (): never => {
        throw broken;
      };
      if (step === "capture") vi.spyOn(handle.files, "read").mockImplementation(fails);
      if (step === "acquire") other.faults.set("acquire", { error: broken });
      if (step === "unpack") {
        const acquire = other.acquire.bind(other);
        other.acquire = async (request, options) => {
          const made = await acquire(request, options);
          made.files.write = fails;
          return made;
        };
      }
      if (step === "announcement") vi.spyOn(durable.ownership, "update").mockImplementationOnce(fails);
      if (step === "ownership") vi.spyOn(durable.ownership, "rehouse").mockImplementation(fails);
      const answer = await box.call("POST", "/move", { backend: "other" });
      expect([answer.status, answer.body.error.code]).toEqual([503, "no_space"]);
      if (step !== "capture")
        expect(answer.body.error.message).toMatch(/was not moved and keeps running.*disk is full/);
      vi.restoreAllMocks();
      expect((await box.exec({ shell: "cat /workspace/mark" })).stdout).toBe("here\n");
      expect([backend.runningCount, other.runningCount]).toEqual([1, 0]);
      expect((await api.list()).items).toEqual([]);
      const alive = (await list(api)).filter(({ state }) => state !== "destroyed");
      expect(alive.map(({ id, state, key }) => [id, state, key])).toEqual([[box.id, "running", "k"]]);
      expect(api.server.problems).toEqual([]);
      // Nothing is in the way of another attempt.
      other.faults.clear();
      if (step !== "unpack") expect((await box.call("POST", "/move", { backend: "other" })).status).toBe(200);
    },
  );

  test("an old copy that dies while it ends does not affect the new one", async () => {
    const { api, other } = await startPair();
    const box = await SandboxClient.create(api.server);
    await box.exec({ shell: "echo here > /workspace/mark" });
    api.server.backend.faults.set("destroy", { error: broken, times: 1 });
    const moved = await box.call<Moved>("POST", "/move", { backend: "other" });
    expect(moved.status).toBe(200);
    expect((await api.sandbox(moved.body.id).exec({ shell: "cat /workspace/mark" })).stdout).toBe("here\n");
    expect(api.server.problems.join()).toMatch(/end of a sandbox that was moved: The disk is full/);
    expect(other.runningCount).toBe(1);
  });
});
