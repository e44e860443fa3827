import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { installEngine } from "../../src/setup/engine/cache.ts";
import { EngineLibrary, type LibraryOptions } from "../../src/setup/engine/engine-library.ts";
import type { EngineSource } from "../../src/setup/engine/source.ts";
import type { SelfTest } from "../../src/setup/platform.ts";
import { setupFixture, type SetupFixture } from "./setup-fixture.ts";

const AGENT = { path: "/x/agent", sha256: "a".repeat(64) };
const OLD = "20240729.0";
const NEWEST = "0.0.0-20260701204157-69c2d17aea96";
const { signal } = new AbortController();
const script = (version: string): string => `echo "runsc version release-${version}"`;
const works: SelfTest = async () => ({ ok: true, elapsedMs: 1, control: "commands" });

async function install(fixture: SetupFixture, version: string) {
  const candidate = fixture.program(`candidate-${version}`, script(version));
  return installEngine(fixture.context.cacheDirectory, candidate, "cache", signal);
}

/** A source that has this version, once it is let go. */
function source(fixture: SetupFixture, version: string, gate: Promise<void> = Promise.resolve()): EngineSource {
  return {
    name: "a friend",
    message: `Asking a friend for ${version}`,
    timeoutMs: 20_000,
    find: async () => {
      await gate;
      return { value: await install(fixture, version), message: "got it" };
    },
  };
}

async function library(fixture: SetupFixture, options: Partial<LibraryOptions> = {}, current = OLD) {
  const engine = { ...(await install(fixture, current)), platform: "systrap" as const, control: "messages" as const };
  const usual = { fetch: true, selfTest: works, sourcesOf: () => [], newestSources: [] };
  return { current: engine, library: new EngineLibrary(fixture.context, AGENT, engine, { ...usual, ...options }) };
}

const wanted = (version: string, sha256 = "") => ({ version, sha256, platform: "systrap" as const });

test("an image gets the engine that wrote it, tested once, while the default stays", async () => {
  using fixture = setupFixture();
  const tested: string[] = [];
  const selfTest: SelfTest = async ({ runscPath }) => {
    tested.push(runscPath);
    return { ok: true, elapsedMs: 1, control: "commands" };
  };
  const { library: engines } = await library(fixture, { selfTest });
  const newest = await install(fixture, NEWEST);
  expect(await engines.find(wanted(NEWEST))).toMatchObject({ path: newest.path, version: NEWEST, platform: "systrap" });
  expect(await engines.find(wanted(NEWEST))).toMatchObject({ path: newest.path });
  expect(tested).toEqual([newest.path]);
  expect(engines.facts).toMatchObject([
    { version: OLD, state: "default", control: "messages", message: expect.stringContaining("no network namespaces") },
    { version: NEWEST, state: "used", control: "commands" },
  ]);
});

test("an image gets the exact build that wrote it, not another build of the version", async () => {
  using fixture = setupFixture();
  const { library: engines } = await library(fixture, {}, NEWEST);
  const cached = await install(fixture, OLD);
  const onPath = fixture.program("bin/runsc", `${script(OLD)} # another build`);
  const sha256 = createHash("sha256").update(readFileSync(onPath)).digest("hex");
  expect(await engines.find(wanted(OLD, sha256))).toMatchObject({ path: onPath });
  expect(await engines.find(wanted(OLD, cached.sha256))).toMatchObject({ path: cached.path });
});

test("a missing engine is fetched once for all that wait for it", async () => {
  using fixture = setupFixture();
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const sourcesOf = (version: string) => [{ ...source(fixture, version, gate.promise), message: `${asked++}` }];
  const { library: engines } = await library(fixture, { sourcesOf });
  const phases: string[] = [];
  const onProgress = ({ phase }: { phase: string }): void => void phases.push(phase);
  const finding = [engines.find(wanted("20250101.0"), { onProgress }), engines.find(wanted("20250101.0"))];
  await expect
    .poll(() => engines.facts)
    .toContainEqual(expect.objectContaining({ version: "20250101.0", state: "fetching" }));
  gate.resolve();
  const [first, second] = await Promise.all(finding);
  expect(first?.path).toBe(second?.path);
  expect(phases).toEqual(["fetching engine"]);
  expect(fixture.steps.filter(({ name, state }) => name === "engine: a friend" && state === "done")).toHaveLength(1);
});

test("a restore does not wait for minutes: it reports that the engine is being fetched, and succeeds later", async () => {
  using fixture = setupFixture();
  const gate = Promise.withResolvers<void>();
  const sourcesOf = (version: string) => [source(fixture, version, gate.promise)];
  const { library: engines } = await library(fixture, { sourcesOf, waitMs: 1 });
  await expect(engines.find(wanted("20250101.0"))).rejects.toMatchObject({
    code: "backend_unavailable",
    message: "The image was saved by runsc 20250101.0, which is being fetched or built on this server.",
    hint: expect.stringContaining("Try again"),
  });
  gate.resolve();
  await expect.poll(() => existsSync(`${fixture.context.cacheDirectory}/engines/20250101.0/runsc`)).toBe(true);
  expect(await engines.find(wanted("20250101.0"))).toMatchObject({ version: "20250101.0" });
});

test.each([
  ["nobody has it", {}, "sandboxer has no tested way to get it."],
  ["fetching is off", { fetch: false }, "The server was started with --no-fetch-engines."],
  [
    "it cannot be reached",
    { sourcesOf: () => [{ name: "x", message: "x", timeoutMs: 9, find: async () => ({ skipped: "No route." }) }] },
    "No route.",
  ],
])(
  "a missing engine is an error with its version, where it was looked for and the next step: %s",
  async (_, options, why) => {
    using fixture = setupFixture();
    const { library: engines } = await library(fixture, options);
    await expect(engines.find(wanted("20250101.0"))).rejects.toMatchObject({
      code: "image_incompatible",
      message: `The image cannot run on this server: it was saved by runsc 20250101.0, which is not on this machine. Looked for it at ${fixture.context.cacheDirectory}/engines/20250101.0/runsc and on PATH. ${why}`,
      hint: expect.stringContaining("Put a runsc of that version on the server's PATH"),
    });
  },
);

test("a damaged engine in the cache is not used", async () => {
  using fixture = setupFixture();
  const { library: engines } = await library(fixture);
  const { path } = await install(fixture, NEWEST);
  writeFileSync(path, `#!/bin/sh\n${script(NEWEST)} # changed\n`);
  await expect(engines.find(wanted(NEWEST))).rejects.toMatchObject({
    code: "image_incompatible",
    hint: expect.stringContaining("sandboxer setup --newest"),
  });
});

test("an engine that fails its self-test here is refused by name, and kvm is not tried unasked", async () => {
  using fixture = setupFixture();
  const selfTest: SelfTest = async () => ({ ok: false, reason: "it hangs" });
  const { library: engines } = await library(fixture, { selfTest });
  await install(fixture, NEWEST);
  await expect(engines.find(wanted(NEWEST))).rejects.toMatchObject({
    code: "image_incompatible",
    message: expect.stringMatching(new RegExp(`runsc ${NEWEST}, which saved it, does not work .* it hangs`)),
  });
  await expect(engines.find({ ...wanted(OLD), platform: "kvm" })).rejects.toThrow(/--platform kvm/);
});

test("a start on an old engine fetches the newest in the background, and offers it for the next restart", async () => {
  using fixture = setupFixture();
  const gate = Promise.withResolvers<void>();
  const newestSources = [source(fixture, NEWEST, gate.promise)];
  const { library: engines, current } = await library(fixture, { newestSources });
  await engines.open(current);
  expect(engines.facts).toContainEqual(expect.objectContaining({ version: NEWEST, state: "fetching" }));
  gate.resolve();
  const ready = expect.objectContaining({
    version: NEWEST,
    state: "ready",
    message: expect.stringContaining("restart"),
  });
  await expect.poll(() => engines.facts).toContainEqual(ready);
  expect(fixture.steps).toContainEqual(
    expect.objectContaining({
      name: "newest engine",
      message: expect.stringMatching(/is ready\. New sandboxes use it/),
    }),
  );
});

test("if no newer one is available, one sentence lists what the old one lacks", async () => {
  using fixture = setupFixture();
  const { library: engines, current } = await library(fixture);
  await engines.open(current);
  const told = () => fixture.steps.find(({ name }) => name === "newest engine")?.message;
  await expect.poll(told).toMatch(/Keeping runsc 20240729\.0: .* no network namespaces/);
});

test.each([
  ["the newest is the default", NEWEST, {}],
  ["fetching is off", OLD, { fetch: false }],
])("nothing is fetched at a start where %s", async (_, version, options) => {
  using fixture = setupFixture();
  let asked = false;
  const newestSources: EngineSource[] = [
    { ...source(fixture, NEWEST), find: async () => ((asked = true), { skipped: "no" }) },
  ];
  const { library: engines, current } = await library(fixture, { newestSources, ...options }, version);
  await engines.open(current);
  await engines.close();
  expect(asked).toBe(false);
});

test("the end of the server ends a fetch", async () => {
  using fixture = setupFixture();
  const hung: EngineSource = {
    name: "slow",
    message: "Building for hours",
    timeoutMs: 60_000,
    find: (_context, ended) =>
      new Promise((_resolve, reject) => ended.addEventListener("abort", () => reject(ended.reason as Error))),
  };
  const { library: engines, current } = await library(fixture, { newestSources: [hung] });
  await engines.open(current);
  await expect.poll(() => fixture.steps.at(-1)).toMatchObject({ name: "engine: slow", state: "start" });
  await engines.close();
  expect(fixture.steps.at(-1)).toMatchObject({ name: "engine: slow", state: "failed" });
});
