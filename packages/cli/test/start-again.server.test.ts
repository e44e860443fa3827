import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const BIN = fileURLToPath(new URL("../bin/sandboxer.mjs", import.meta.url));

/** A Node of this machine that is too old to run the command itself. */
const oldNode = ["/usr/bin/node", "/usr/local/bin/node"].find((path) => {
  if (!existsSync(path)) return false;
  const version = spawnSync(path, ["-p", "process.versions.node"], { encoding: "utf8" }).stdout;
  return Number(version.split(".")[0]) < 22;
});

test("runs on this Node", () => {
  const result = spawnSync(process.execPath, [BIN, "--help"], { encoding: "utf8" });
  expect(result).toMatchObject({ status: 0, stderr: "" });
  expect(result.stdout).toContain("serve");
});

describe.skipIf(oldNode === undefined)("on a Node that is too old (skipped where there is none)", () => {
  const old = oldNode ?? "";

  test("output and exit code are those of the command", () => {
    expect(spawnSync(old, [BIN, "--help"], { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
    const result = spawnSync(old, [BIN, "serve", "--port", "x"], { encoding: "utf8" });
    expect(result.status).toBe(2);
    expect(result.stderr).toContain("flag --port");
  });

  test("the command ends with the process that was started, also on kill -9", async () => {
    const parent = spawn(old, [BIN, "setup", "--runsc", "/bin/sh"], { stdio: "ignore" });
    const childId = await childOf(parent.pid ?? 0);
    parent.kill("SIGKILL");
    await expect.poll(() => existsSync(`/proc/${childId}`)).toBe(false);
  });
});

async function childOf(parentId: number): Promise<number> {
  const read = (): number =>
    Number(spawnSync("ps", ["--ppid", String(parentId), "-o", "pid="], { encoding: "utf8" }).stdout.trim());
  await expect.poll(read, { interval: 5 }).toBeGreaterThan(0);
  return read();
}
