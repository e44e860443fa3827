import { describe, expect, test } from "vitest";
import { createRequestSchema, profileSchema, type CreateRequestBody } from "@sandboxer/protocol";
import { applyProfile } from "../../src/profiles/apply-profile.ts";

type ProfileText = Readonly<Record<string, unknown>>;

function apply(profile: ProfileText, request: CreateRequestBody = {}) {
  const parsed = profileSchema.parse({
    name: "profile.test",
    ...("extension" in profile ? {} : { backends: ["gvisor"] }),
    ...profile,
  });
  return applyProfile(parsed, createRequestSchema.parse(request));
}

const failing = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

test("an empty request gets the settings of the profile", () => {
  const applied = apply({
    isolation: "gvisor",
    network: "sandbox",
    image: "docker:debian",
    env: { A: "1" },
    labels: { team: "ml" },
    resources: { memory_mb: 512 },
    ttl: { default: "1h", max: "2h", idle: "10m" },
    setup: ["make", "make test"],
    placement: { region: "eu" },
    secret_refs: { TOKEN: "github" },
    enable_checkpoint: true,
    on_disconnect: "checkpoint",
  });
  expect(applied).toEqual({
    profile: "profile.test",
    backends: ["gvisor"],
    strategy: "explicit",
    isolation: "gvisor",
    placement: { region: "eu" },
    setup: ["make", "make test"],
    secretRefs: { TOKEN: "github" },
    ttlMs: 3_600_000,
    maxTtlMs: 7_200_000,
    request: {
      profile: "profile.test",
      image: "docker:debian",
      inputs: {},
      env: { A: "1" },
      labels: { team: "ml" },
      resources: { memory_mb: 512 },
      network: "sandbox",
      ttl: "1h",
      idle_timeout: "10m",
      enable_checkpoint: true,
      on_disconnect: "checkpoint",
    },
  });
});

test("the request wins, and maps are merged key by key", () => {
  const { request, ttlMs } = apply(
    {
      network: "sandbox",
      image: "host",
      env: { A: "1", B: "1" },
      labels: { team: "ml", tier: "1" },
      resources: { memory_mb: 512, cpus: 1 },
      ttl: { default: "1h", idle: "10m" },
    },
    {
      network: "none",
      image: "docker:debian",
      env: { B: "2" },
      labels: { tier: "2" },
      resources: { cpus: 4 },
      ttl: "3d",
      idle_timeout: 0,
      name: "ada",
      key: "k",
    },
  );
  expect(request).toMatchObject({
    network: "none",
    image: "docker:debian",
    env: { A: "1", B: "2" },
    labels: { team: "ml", tier: "2" },
    resources: { memory_mb: 512, cpus: 4 },
    ttl: "3d",
    idle_timeout: 0,
    name: "ada",
    key: "k",
  });
  expect(ttlMs).toBe(3 * 86_400_000);
});

test("the result is again a request", () => {
  expect(() => createRequestSchema.parse(apply({ ttl: { idle: "1m" } }, { name: "x" }).request)).not.toThrow();
});

test("neither profile nor request is changed", () => {
  const profile = profileSchema.parse({ name: "p", backends: ["a"], env: { A: "1" }, setup: ["x"] });
  const request: CreateRequestBody = { env: { B: "2" } };
  const applied = applyProfile(profile, request);
  (applied.setup as string[]).push("y");
  Object.assign(applied.request.env ?? {}, { C: "3" });
  expect([profile.setup, profile.env, request]).toEqual([["x"], { A: "1" }, { env: { B: "2" } }]);
});

describe("ttl", () => {
  test("above the maximum is refused, up to it is not", () => {
    expect(() => apply({ ttl: { max: "4h" } }, { ttl: "5h" })).toThrow(
      failing("ttl_too_long", /5h is longer than profile\.test allows: 4h/),
    );
    expect(apply({ ttl: { max: "4h" } }, { ttl: "240m" }).ttlMs).toBe(14_400_000);
  });

  test("with a maximum and no default, the maximum is the default", () => {
    expect(apply({ ttl: { max: "4h" } })).toMatchObject({ ttlMs: 14_400_000, request: { ttl: "4h" } });
  });

  test("without any there is none", () => {
    expect(apply({})).toMatchObject({ ttlMs: undefined, maxTtlMs: undefined });
    expect(apply({}).request).not.toHaveProperty("ttl");
  });
});

describe("inputs", () => {
  const inputs = {
    repo: { required: true, description: "the folder" },
    ref: { default: "main" },
    note: {},
  };

  test("a missing required one is named", () => {
    expect(() => apply({ inputs })).toThrow(failing("bad_request", /needs these inputs: repo \(the folder\)/));
  });

  test("defaults fill in, and given values win; an empty text is a value", () => {
    expect(apply({ inputs }, { inputs: { repo: "." } }).request.inputs).toEqual({ repo: ".", ref: "main" });
    const given = { repo: "", ref: "dev", note: "n" };
    expect(apply({ inputs }, { inputs: given }).request.inputs).toEqual(given);
  });

  test("a backend that is not declared is refused", () => {
    expect(() => apply({ inputs }, { inputs: { repo: ".", reff: "x" } })).toThrow(
      failing("bad_request", /has no inputs "reff"\. Did you mean ref\?/),
    );
    expect(() => apply({}, { inputs: { constructor: "." } })).toThrow(failing("bad_request", /constructor/));
  });
});

describe("backends", () => {
  test.each([
    ["ext.compose-ssh", "compose-ssh"],
    ["ext.saas-stub", "saas-stub"],
    ["ext.of-somebody", "ext.of-somebody"],
  ])("the extension %s is the backend %s", (extension, backend) => {
    expect(apply({ extension }).backends).toEqual([backend]);
  });

  test.each([
    ["ext.mine", "ext.mine"],
    ["ext.compose-ssh", "compose-ssh"],
  ])("a list and a request may name %s", (named, backend) => {
    expect(apply({ backends: [named] }, { backend: named }).backends).toContain(backend);
  });

  test("all that the profile names, in its order, with its strategy", () => {
    expect(apply({ backends: ["docker", "gvisor"], strategy: "lowest-cost" })).toMatchObject({
      backends: ["docker", "gvisor"],
      strategy: "lowest-cost",
    });
    expect(apply({ backends: ["docker", "gvisor"] }).request).not.toHaveProperty("backend");
  });

  test("a backend that the request names is the only one", () => {
    const applied = apply({ backends: ["docker", "gvisor"] }, { backend: "gvisor" });
    expect(applied).toMatchObject({ backends: ["gvisor"], request: { backend: "gvisor" } });
    expect(apply({ extension: "ext.saas-stub" }, { backend: "ext.saas-stub" }).backends).toEqual(["saas-stub"]);
  });

  test("a backend that the profile does not name is refused", () => {
    expect(() => apply({ backends: ["docker"] }, { backend: "dokcer" })).toThrow(
      failing("not_supported", /does not support the backend "dokcer", only docker\. Did you mean docker\?/),
    );
  });
});

test("a variable of the request replaces the profile's secret", () => {
  const profile = { secret_refs: { TOKEN: "github", OTHER: "other" } };
  expect(apply(profile, { env: { TOKEN: "mine" } })).toMatchObject({
    secretRefs: { OTHER: "other" },
    request: { env: { TOKEN: "mine" } },
  });
});

test("a request without checkpoints drops the profile's settings that need them", () => {
  const profile = {
    enable_checkpoint: true,
    enable_sandbox_handoff: true,
    on_disconnect: "checkpoint",
    restart: "always",
  };
  const { request } = apply(profile, { enable_checkpoint: false });
  expect(request.enable_checkpoint).toBe(false);
  expect(request).not.toHaveProperty("enable_sandbox_handoff");
  expect(request).not.toHaveProperty("on_disconnect");
  expect(request).not.toHaveProperty("restart");
  expect(apply(profile, { on_disconnect: "keep" }).request).toMatchObject({
    enable_checkpoint: true,
    enable_sandbox_handoff: true,
    on_disconnect: "keep",
    restart: "always",
  });
});
