import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseDurationMs } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { ServerProcess } from "../kit/server/server-process.ts";
import { temporaryFolder } from "../kit/temporary-folder.ts";

const UNIT = join(import.meta.dirname, "../../deploy/systemd/sandboxer.service");
const ANALYZE = "/usr/bin/systemd-analyze";
const run = promisify(execFile);

async function settings(): Promise<ReadonlyMap<string, string>> {
  const lines = (await readFile(UNIT, "utf8")).split("\n").filter((line) => /^\w+=/.test(line));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}

test.skipIf(!existsSync(ANALYZE))("systemd accepts the unit, and finds it safer than an open one", async () => {
  const file = join(await temporaryFolder(), "sandboxer.service");
  // Only the program may be missing here.
  await writeFile(
    file,
    (await readFile(UNIT, "utf8")).replace("/usr/bin/env sandboxer", `${process.execPath} sandboxer`),
  );
  const { stdout, stderr } = await run(ANALYZE, ["verify", file]);
  expect(stdout + stderr).toBe("");
  // 9.6 is a unit without any restriction; gVisor needs root, namespaces and mounts.
  await run(ANALYZE, ["security", "--offline=true", "--threshold=80", file]);
});

test("systemd waits longer than a drain may take, and signals only the server", async () => {
  const unit = await settings();
  const [, drain = ""] = /--drain-timeout (\S+)/.exec(unit.get("ExecStart") ?? "") ?? [];
  expect(parseDurationMs((unit.get("TimeoutStopSec") ?? "").replace("min", "m"))).toBeGreaterThan(
    parseDurationMs(drain),
  );
  expect(unit.get("KillMode")).toBe("mixed");
});

test("the stop sequence of the unit loses nothing", async () => {
  const unit = await settings();
  const flags = (unit.get("ExecStart") ?? "")
    .split(" ")
    .slice(3)
    .filter((word) => !/^--json$/.test(word));
  const at = flags.indexOf("--config");
  const config = join(await temporaryFolder(), "config.yaml");
  await writeFile(config, "backend: fake\n");
  flags.splice(at, 2, "--config", config);
  const store = join(await temporaryFolder(), "store");
  const server = await ServerProcess.start({ store, flags });
  const { client, id } = await server.create({ enable_checkpoint: true });
  client.send({ language: "bash", code: "echo kept > note" });
  await client.until("EXECUTION_DONE");
  // KillMode=mixed: SIGTERM to the main process, which ends with 0 before anything is killed.
  expect(await server.stop()).toBe(0);
  const next = await ServerProcess.start({ store, flags });
  const attached = next.attach(id);
  await attached.until("RUNNING");
  attached.send({ language: "bash", code: "cat note" });
  expect(await attached.until("EXECUTION_DONE")).toContain("out:kept\n");
});
