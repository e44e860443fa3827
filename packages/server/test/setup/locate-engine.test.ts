import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { installEngine } from "../../src/setup/engine/cache.ts";
import { debianPackageFrom } from "../../src/setup/engine/debian-package.ts";
import { buildNewestEngine, locateEngine } from "../../src/setup/engine/engine.ts";
import { cachedCopy, installed } from "../../src/setup/engine/local-sources.ts";
import { newestBuildOf } from "../../src/setup/engine/newest.ts";
import { officialReleaseFrom } from "../../src/setup/engine/official-release.ts";
import { setupFixture } from "./setup-fixture.ts";

const RUNSC = `echo "runsc version release-20240729.0"; echo "spec: 1.1.0"`;
const OLD_RUNSC = `echo "runsc version 0.0~20221219.0"`;
const { signal } = new AbortController();

test("a given path is used, and nothing else is searched", async () => {
  using fixture = setupFixture();
  const path = fixture.program("mine/runsc", RUNSC);
  fixture.program("bin/runsc", `echo "runsc version release-20990101.0"`);
  const engine = await locateEngine({ ...fixture.context, runscPath: path });
  expect(engine).toMatchObject({ path, version: "20240729.0", source: "given path" });
  expect(engine.sha256).toBe(createHash("sha256").update(readFileSync(path)).digest("hex"));
});

test.each([
  ["nothing there", undefined, /not an executable file/],
  ["another program", `echo "docker version 1"`, /is not runsc/],
  ["one that fails", `echo "cannot run" >&2; exit 3`, /cannot run/],
  ["one that is too old", OLD_RUNSC, /20221219.0; 20240101 or newer is needed/],
])("a path that is given and is wrong is an error: %s", async (_name, script, expected) => {
  using fixture = setupFixture();
  const path = script === undefined ? "/nowhere/runsc" : fixture.program("mine/runsc", script);
  const locating = locateEngine({ ...fixture.context, runscPath: path });
  await expect(locating).rejects.toMatchObject({
    code: "backend_unavailable",
    message: expect.stringMatching(expected),
  });
});

const script = (version: string): string => `echo "runsc version release-${version}"`;
const NEWEST = "0.0.0-20260701204157-69c2d17aea96";
const OFFICIAL = "20260622.0";

test("the newest tested engine on this machine is the default: the official release, then the build", async () => {
  using fixture = setupFixture();
  const locate = async (): Promise<string> => (await locateEngine(fixture.context, [installed])).version;
  for (const version of ["20240729.0", "20991231.0", NEWEST, OFFICIAL]) {
    const candidate = fixture.program(`candidate-${version}`, script(version));
    await installEngine(fixture.context.cacheDirectory, candidate, "test", signal);
    expect(await locate()).toBe(version);
  }
});

test("one on PATH counts like those in the cache, unless it is too old", async () => {
  using fixture = setupFixture();
  const candidate = fixture.program("candidate", RUNSC);
  await installEngine(fixture.context.cacheDirectory, candidate, "test", signal);
  const path = fixture.program("bin/runsc", OLD_RUNSC);
  expect(await locateEngine(fixture.context, [installed])).toMatchObject({ source: "cache" });
  writeFileSync(path, `#!/bin/sh\n${script("20250101.0")}\n`);
  expect(await locateEngine(fixture.context, [installed])).toMatchObject({ source: "runsc on PATH", path });
});

test("a damaged engine in the cache is skipped", async () => {
  using fixture = setupFixture();
  for (const version of ["20240729.0", NEWEST]) {
    const candidate = fixture.program(`candidate-${version}`, script(version));
    await installEngine(fixture.context.cacheDirectory, candidate, "test", signal);
  }
  writeFileSync(
    `${fixture.context.cacheDirectory}/engines/${NEWEST}/runsc`,
    `#!/bin/sh\n${script(NEWEST)}\n# changed\n`,
  );
  expect(await locateEngine(fixture.context, [installed])).toMatchObject({ version: "20240729.0" });
});

test("a changed engine in the cache is not used", async () => {
  using fixture = setupFixture();
  const candidate = fixture.program("candidate", RUNSC);
  const { path } = await installEngine(fixture.context.cacheDirectory, candidate, "test", signal);
  writeFileSync(path, `#!/bin/sh\n${RUNSC}\n# changed\n`);
  await expect(locateEngine(fixture.context, [cachedCopy])).rejects.toMatchObject({ code: "backend_unavailable" });
});

test("if no source has one, the error has each reason and the next step", async () => {
  using fixture = setupFixture();
  const locating = locateEngine(fixture.context, [installed, cachedCopy]);
  await expect(locating).rejects.toMatchObject({
    message: expect.stringMatching(/No runsc on PATH\. No runsc in .*\/engines\. No runsc 20240729\.0 in the cache\./),
    hint: expect.stringContaining("setup --newest"),
  });
});

test("a failing source is skipped, and its reason is kept", async () => {
  using fixture = setupFixture();
  fixture.program("bin/runsc", RUNSC);
  const broken = { ...cachedCopy, find: () => Promise.reject(new Error("disk on fire")) };
  expect(await locateEngine(fixture.context, [broken, installed])).toMatchObject({ source: "runsc on PATH" });
  await expect(locateEngine(fixture.context, [broken])).rejects.toThrow(/disk on fire/);
});

test("a source that hangs times out", async () => {
  using fixture = setupFixture();
  fixture.program("bin/runsc", `sleep 1000`);
  const locating = locateEngine(fixture.context, [{ ...installed, timeoutMs: 200 }]);
  await expect(locating).rejects.toThrow(/not done within 0.2 s/);
});

/** A release bucket with one engine. */
async function bucket(engine: string, checksum: string) {
  const server = createServer((request, response) => {
    if (request.url?.endsWith("/runsc.sha512") === true) response.end(`${checksum}  runsc\n`);
    else if (request.url?.endsWith("/runsc") === true) response.end(engine);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/release`,
    [Symbol.asyncDispose]: async () => void (await new Promise((resolve) => server.close(resolve))),
  };
}

test("the official release is checked, then cached", async () => {
  using fixture = setupFixture();
  const script = `#!/bin/sh\n${RUNSC}\n`;
  await using releases = await bucket(script, createHash("sha512").update(script).digest("hex"));
  const engine = await locateEngine(fixture.context, [officialReleaseFrom(releases.url, "20240729.0")]);
  expect(engine).toMatchObject({ version: "20240729.0", source: "official release" });
  expect(readFileSync(engine.path, "utf8")).toBe(script);
  expect(await locateEngine(fixture.context, [cachedCopy])).toMatchObject({ path: engine.path });
});

test("a release with another checksum is not installed and leaves nothing behind", async () => {
  using fixture = setupFixture();
  await using releases = await bucket(`#!/bin/sh\n${RUNSC}\n`, "0".repeat(128));
  const locating = locateEngine(fixture.context, [officialReleaseFrom(releases.url, "20240729.0")]);
  await expect(locating).rejects.toThrow(/does not have its published checksum/);
  expect(existsSync(`${fixture.context.cacheDirectory}/engines`)).toBe(false);
  expect(readdirSync(fixture.context.cacheDirectory)).toEqual([]);
});

test("a release with another checksum than ours is not installed, whatever is published", async () => {
  using fixture = setupFixture();
  const program = `#!/bin/sh\n${RUNSC}\n`;
  await using releases = await bucket(program, createHash("sha512").update(program).digest("hex"));
  const ours = officialReleaseFrom(releases.url, "20240729.0", sha256("other"));
  await expect(locateEngine(fixture.context, [ours])).rejects.toThrow(/release 20240729.0 differs from the one that/);
  expect(existsSync(`${fixture.context.cacheDirectory}/engines`)).toBe(false);
  const right = officialReleaseFrom(releases.url, "20240729.0", sha256(program));
  expect(await locateEngine(fixture.context, [right])).toMatchObject({ version: "20240729.0" });
});

test.each(["../latest", "latest", "20240729.0/x", "0.0.0-20260701204157-69c2d17aea96"])(
  "an address is composed only of a release's number: %s",
  async (version) => {
    using fixture = setupFixture();
    const locating = locateEngine(fixture.context, [officialReleaseFrom("http://127.0.0.1:9", version)]);
    await expect(locating).rejects.toThrow(/is not an official release/);
  },
);

test("no network is a normal case", async () => {
  using fixture = setupFixture();
  fixture.program("bin/runsc", RUNSC);
  const sources = [officialReleaseFrom("http://127.0.0.1:9", "20240729.0"), installed];
  expect(await locateEngine(fixture.context, sources)).toMatchObject({ source: "runsc on PATH" });
});

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A machine on which apt fetches, and Go builds, a runsc that leaves a mark where it is run. */
function withSources(fixture: ReturnType<typeof setupFixture>) {
  const ran = `${fixture.directory}/ran`;
  const runsc = (version: string): string => `#!/bin/sh\necho run >> ${ran}\necho "runsc version ${version}"\n`;
  const put = (path: string, version: string): string =>
    `mkdir -p "$(dirname "${path}")"; cat > "${path}" <<'END'\n${runsc(version)}END\nchmod 755 "${path}"`;
  fixture.program("bin/apt-get", `case "$*" in *download*) : > runsc_1_amd64.deb;; esac`);
  fixture.program("bin/dpkg-deb", put("$3/usr/bin/runsc", "0.0~20240729.0"));
  const modules = ["\tmod\tgvisor.dev/gvisor\tv1\th1:a=", "\tdep\texample.org/b\tv2\th1:b="].join("\n");
  fixture.program(
    "bin/go",
    `if [ "$1" = install ]; then ${put("$GOBIN/runsc", NEWEST)}\nelse printf '%s: go1\n\tpath\tx\n%s\n\tbuild\tx\n' "$3" '${modules}'; fi`,
  );
  const apt = fixture.program("apt/sources.list", "").replace(/\/sources\.list$/, "");
  writeFileSync(`${apt}/sources.list`, `deb [signed-by=${apt}/sources.list] http://127.0.0.1:9/debian bookworm main\n`);
  return {
    debian: (checksum: string) => debianPackageFrom(apt, checksum),
    checksum: sha256(runsc("0.0~20240729.0")),
    modules: sha256(`${modules}\n`),
    hasRun: () => existsSync(ran),
  };
}

test("a build that fails does not ask for Go where Go is installed", async () => {
  using fixture = setupFixture();
  fixture.program("bin/go", "exit 1");
  await expect(buildNewestEngine(fixture.context)).rejects.toMatchObject({ hint: expect.stringMatching(/^Try again/) });
});

test("a build whose download was interrupted is retried; a refused one is not", async () => {
  using fixture = setupFixture();
  const tries = `${fixture.directory}/tries`;
  const failing = async (words: string): Promise<string> => {
    writeFileSync(tries, "");
    fixture.program("bin/go", `echo x >> ${tries}; echo 'go: ${words}' >&2; exit 1`);
    await expect(locateEngine(fixture.context, [newestBuildOf("")])).rejects.toThrow(words);
    return readFileSync(tries, "utf8").replaceAll("\n", "");
  };
  expect(await failing("net/http: TLS handshake timeout")).toBe("xxx");
  expect(await failing("module lookup disabled by GOPROXY=off")).toBe("x");
});

test("Debian's package and a build are used if they are the tested ones", async () => {
  using fixture = setupFixture();
  const { debian, checksum, modules } = withSources(fixture);
  expect(await locateEngine(fixture.context, [debian(checksum)])).toMatchObject({ version: "20240729.0" });
  expect(await locateEngine(fixture.context, [newestBuildOf(modules)])).toMatchObject({ version: NEWEST });
});

test("an untested package or build is never run", async () => {
  using fixture = setupFixture();
  const { debian, hasRun } = withSources(fixture);
  const other = sha256("other");
  await expect(locateEngine(fixture.context, [debian(other)])).rejects.toThrow(
    /The runsc of runsc_1_amd64.deb differs from the one that sandboxer was tested with .* it was not used/,
  );
  await expect(locateEngine(fixture.context, [newestBuildOf(other)])).rejects.toThrow(
    /The source that Go built runsc from differs/,
  );
  expect(hasRun()).toBe(false);
  expect(existsSync(`${fixture.context.cacheDirectory}/engines`)).toBe(false);
});
