import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";
import { movedFolder, type VanishingFolder } from "../../../test/kit/vanishing-folder.ts";
import { runProgram } from "../src/program.ts";
import { fakeIo } from "./support/fake-io.ts";

/** A machine whose store may be unavailable. */
async function machine(): Promise<{
  folder: VanishingFolder;
  run: (...argv: string[]) => Promise<{ code: number; out: string; err: string }>;
  serve: (...argv: string[]) => Promise<{ code: number; out: string; err: string }>;
}> {
  const folder = await movedFolder();
  const data = await temporaryFolder();
  const flags = ["--store", folder.path, "--data-directory", data];
  const start = async (argv: string[], whenOut: (io: ReturnType<typeof fakeIo>) => void) => {
    const io = fakeIo();
    const running = { ...io, stdout: (text: string) => (io.stdout(text), whenOut(io)) };
    return { code: await runProgram([...argv, ...flags], running), out: io.out(), err: io.err() };
  };
  return {
    folder,
    run: async (...argv) => await start(argv, () => {}),
    // It is stopped as soon as it serves.
    serve: async (...argv) =>
      await start(["serve", "--backend", "fake", "--port", "0", "--log-level", "silent", ...argv], (io) =>
        io.signal("SIGTERM"),
      ),
  };
}

test("a server that is started before its mount does not take the bare folder for its store", async () => {
  const { folder, serve } = await machine();
  expect(await serve()).toMatchObject({ code: 0 });
  await folder.vanish();
  const refused = await serve();
  expect(refused).toMatchObject({ code: 10, out: "" });
  expect(refused.err).toMatch(/The store [0-9a-f-]{36} is not at .*store: store\.json is missing there\./);
  expect(refused.err).toContain("Mount that store");
  expect(await folder.strays()).toEqual([]);
  await folder.comeBack();
  expect(await serve()).toMatchObject({ code: 0 });
});

test("with --require-store no server creates a store, and an existing one is used", async () => {
  const { folder, serve } = await machine();
  const refused = await serve("--require-store");
  expect(refused).toMatchObject({ code: 10, out: "" });
  expect(refused.err).toContain(`There is no store at ${folder.path}.`);
  expect(await folder.strays()).toEqual([]);
  expect(await serve()).toMatchObject({ code: 0 });
  expect(await serve("--require-store")).toMatchObject({ code: 0 });
});

test("gc, scrub and doctor report that a known store is unavailable, and leave nothing", async () => {
  const { folder, serve, run } = await machine();
  await serve();
  expect(await run("gc", "--apply")).toMatchObject({ code: 0 });
  await folder.vanish();
  for (const command of [["gc", "--apply"], ["scrub"]]) {
    const { code, err } = await run(...command);
    expect([command, code]).toEqual([command, 10]);
    expect(err).toContain("store.json is missing");
  }
  const checks = JSON.parse((await run("doctor", "--json")).out) as { checks: { name: string }[] };
  expect(checks.checks.find(({ name }) => name === "store")).toMatchObject({
    state: "missing",
    message: expect.stringContaining("store.json is missing") as unknown,
    remedy: expect.stringContaining("Mount that store") as unknown,
  });
  expect(await folder.strays()).toEqual([]);
});

test("gc of a store of an earlier release changes nothing there without --apply", async () => {
  const { folder, run } = await machine();
  await mkdir(join(folder.path, randomUUID(), "checkpoints"), { recursive: true });
  const before = await folder.strays();
  expect(await run("gc")).toMatchObject({ code: 0 });
  expect(await folder.strays()).toEqual(before);
});
