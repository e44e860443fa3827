import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { startCli } from "./support/run-cli.ts";
import { COMMAND } from "../../../test/kit/server/command.ts";

/** Runs the CLI as a process of its own whose reader disconnects after the first bytes. */
async function withImpatientReader(argv: readonly string[], url: string): Promise<number | null> {
  const child = spawn(process.execPath, [COMMAND, ...argv], {
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], SANDBOXER_URL: url },
    stdio: ["ignore", "pipe", "ignore"],
  });
  child.stdout.once("data", () => child.stdout.destroy());
  return new Promise((resolve) => child.on("exit", (code) => resolve(code)));
}

test("a reader that closes its pipe ends the program in the sandbox, and run leaves nothing behind", async () => {
  const cli = await startCli();
  expect(await withImpatientReader(["run", "--", "yes"], cli.server.url)).toBe(141);
  expect((await cli(["ls", "-q"])).out).toBe("");
});

test("a reader that closes its pipe ends events -f", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const ended = withImpatientReader(["events", "-f"], cli.server.url);
  let over = false;
  void ended.then(() => (over = true));
  await expect
    .poll(
      async () => {
        await cli.id(["update", "web", "--label", `at=${performance.now()}`]);
        await cli.id(["checkpoint", "web"]);
        await cli.id(["attach", "web"]);
        return over;
      },
      { timeout: 15_000, interval: 50 },
    )
    .toBe(true);
  expect(await ended).toBe(141);
});

test("all written output arrives, however slow the reader", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const child = spawn(process.execPath, [COMMAND, "exec", "web", "--", "head", "-c", "3000000", "/dev/zero"], {
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], SANDBOXER_URL: cli.server.url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let bytes = 0;
  for await (const piece of child.stdout) {
    bytes += (piece as Buffer).length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(bytes).toBe(3_000_000);
});
