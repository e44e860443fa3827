import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findAgent, prepareAgent } from "../../src/setup/agent-binary.ts";
import { setupFixture, type SetupFixture } from "./setup-fixture.ts";

/** An agent directory whose "compiler" is cp. */
function withSources(fixture: SetupFixture) {
  const agentDirectory = join(fixture.directory, "agent");
  mkdirSync(join(agentDirectory, "src"), { recursive: true });
  writeFileSync(join(agentDirectory, "src", "main.c"), "first");
  writeFileSync(join(agentDirectory, "Makefile"), "");
  // Called as: make -C DIRECTORY OUT=DIRECTORY CC=PATH
  const make = `. /dev/null; eval "$3"; PATH=/usr/bin:/bin; echo made >> ${fixture.directory}/log; cp "$2/src/main.c" "$OUT/sandboxer-agent"`;
  return { ...fixture.context, agentDirectory, make };
}

test("compiled once for the same sources, and again when they change", async () => {
  using fixture = setupFixture();
  const context = withSources(fixture);
  fixture.program("bin/make", context.make);
  fixture.program("bin/cc", "");
  expect(await findAgent(context)).toBeUndefined();
  const first = await prepareAgent(context);
  expect(readFileSync(first.path, "utf8")).toBe("first");
  expect(await prepareAgent(context)).toEqual(first);
  expect(await findAgent(context)).toEqual(first);
  writeFileSync(join(context.agentDirectory, "src", "main.c"), "second");
  const second = await prepareAgent(context);
  expect(second.path).not.toBe(first.path);
  expect(readFileSync(join(fixture.directory, "log"), "utf8")).toBe("made\nmade\n");
});

test("a prebuilt one needs no compiler", async () => {
  using fixture = setupFixture();
  const agentDirectory = join(fixture.directory, "agent");
  const path = fixture.program(`agent/prebuilt/linux-${process.arch}/sandboxer-agent`, "");
  expect(await prepareAgent({ ...fixture.context, agentDirectory })).toMatchObject({ path });
});

test("without a compiler the error names the package to install", async () => {
  using fixture = setupFixture();
  const preparing = prepareAgent(withSources(fixture));
  await expect(preparing).rejects.toMatchObject({
    code: "backend_unavailable",
    hint: "Run: apt-get install gcc libc6-dev make",
  });
});

test("a compiler's error is reported", async () => {
  using fixture = setupFixture();
  fixture.program("bin/make", `echo "main.c:1: error: no such thing" >&2; echo "make: *** failed" >&2; exit 2`);
  fixture.program("bin/cc", "");
  await expect(prepareAgent(withSources(fixture))).rejects.toThrow(/main.c:1: error: no such thing/);
});
