import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { meanwhile } from "../../../test/kit/meanwhile.ts";

const MODULE = new URL("../src/parent-watch.ts", import.meta.url).href;
const WATCHER = `
  const { onNpmGone } = await import(${JSON.stringify(MODULE)});
  onNpmGone(process.env, () => { console.log("gone"); process.exit(); });
  console.log("watching");
  setInterval(() => {}, 1000);`;

/** As npm does: npm, a shell, the command. */
function startChain(env: Record<string, string>) {
  const shell = `"$NODE" --input-type=module -e "$CODE"; true`;
  const npm = spawn("/bin/sh", ["-c", `/bin/sh -c '${shell}'; true`], {
    env: { ...process.env, NODE: process.execPath, CODE: WATCHER, ...env },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  let output = "";
  npm.stdout.on("data", (data: Buffer) => (output += data.toString()));
  return { npm, output: () => output };
}

test.each(["SIGTERM", "SIGKILL"] as const)("notices that npm was ended by %s", async (signal) => {
  const { npm, output } = startChain({ npm_command: "exec" });
  await expect.poll(output).toContain("watching");
  npm.kill(signal);
  await once(npm, "exit");
  await expect.poll(output).toContain("gone");
});

test("a process that npm did not start may outlive its parent", async () => {
  const { npm, output } = startChain({ npm_command: undefined as unknown as string });
  await expect.poll(output).toContain("watching");
  process.kill(npm.pid ?? 0, "SIGKILL");
  await meanwhile(800);
  expect(output()).not.toContain("gone");
  process.kill(-(npm.pid ?? 0), "SIGKILL");
});
