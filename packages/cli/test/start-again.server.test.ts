import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";

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
    const serve = ["serve", "--backend", "fake", "--port", "0", "--json", "--data-directory", await temporaryFolder()];
    const parent = spawn(old, [BIN, ...serve], { stdio: ["ignore", "pipe", "ignore"] });
    // A server runs until it is stopped, so that its process can be found however slow the machine is.
    await once(parent.stdout, "data");
    const children = await readFile(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8");
    const childId = Number(children.trim());
    expect(childId).toBeGreaterThan(0);
    parent.kill("SIGKILL");
    await expect.poll(() => existsSync(`/proc/${childId}`)).toBe(false);
  });
});
