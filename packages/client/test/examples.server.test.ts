import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { deadUrl } from "./support/scripted-server.ts";
import { server } from "./support/server.ts";

const run = promisify(execFile);
const FOLDER = fileURLToPath(new URL("../../../examples/", import.meta.url));

test("all examples of the SDK are tested", async () => {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith(".mjs"));
  expect(names.toSorted()).toEqual(["hello.mjs", "try-three-ways.mjs"]);
});

test("try-three-ways keeps the best fork and leaves no sandbox", async () => {
  const { url, client } = await server();
  const { stdout } = await run(process.execPath, [`${FOLDER}try-three-ways.mjs`, url]);
  expect(stdout).toContain("times 4: 40\n");
  expect(stdout).toContain("Kept the one with 40\n");
  expect((await client.info()).sandboxes).toBe(0);
});

test("try-three-ways without a server prints the next step", async () => {
  const failed = run(process.execPath, [`${FOLDER}try-three-ways.mjs`, await deadUrl()]);
  await expect(failed).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("sandboxer serve") });
});
