import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startCli } from "./support/run-cli.ts";

test("a sandbox with a key from a file or the environment is created, saved and resumed only with it", async () => {
  const cli = await startCli();
  const key = randomBytes(32).toString("base64");
  writeFileSync(join(cli.folder, "my.key"), `${key}\n`);
  const withFile = ["--encryption-key-file", "my.key"];
  await cli.id(["create", "--name", "web", ...withFile]);
  expect((await cli(["get", "web"])).out).toMatch(/^encrypted with +client key [0-9a-f]{16}$/m);
  await cli.id(["snapshot", "web", "--name", "base"]);
  expect((await cli(["snapshots", "get", "base"])).out).toMatch(/^encrypted with +client key/m);
  const refused = await cli(["restore", "base"]);
  expect(refused).toMatchObject({ code: 3, err: expect.stringContaining("Sandboxer-Encryption-Key") as string });
  expect((await cli(["restore", "base", "--name", "one", ...withFile])).code).toBe(0);
  const env = { SANDBOXER_ENCRYPTION_KEY: key };
  expect((await cli(["restore", "base", "--name", "two"], { env })).code).toBe(0);
  const wrong = await cli(["restore", "base"], { env: { SANDBOXER_ENCRYPTION_KEY: randomBytes(32).toString("hex") } });
  expect(wrong).toMatchObject({ code: 3, err: expect.stringContaining("the one that was sent is") as string });
  const none = await cli(["ls"], { env: { SANDBOXER_ENCRYPTION_KEY: "hunter2" } });
  expect([none.code, none.err.includes("hunter2")]).toEqual([2, false]);
  expect((await cli(["ls", "--encryption-key-file", "nowhere"])).code).toBe(2);
  await cli.id(["checkpoint", "web"]);
  expect((await cli(["exec", "web", "--", "echo", "resumed"])).code).toBe(3);
  expect(await cli(["exec", "web", ...withFile, "--", "echo", "resumed"])).toMatchObject({ code: 0, out: "resumed\n" });
});
