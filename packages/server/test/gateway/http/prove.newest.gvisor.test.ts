import { readdir, readFile } from "node:fs/promises";
import type { SnapshotInfo } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { SandboxClient } from "./processes/support.ts";
import { SnapshotClient } from "./snapshot-client.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The test of test restores on gVisor is skipped: ${missing}`);

/** The engines that run sandboxes of a server. */
async function enginesOf({ dataHome }: ServerProcess): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const command = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
    if (command.includes("boot") && command.some((word) => word.includes(dataHome))) found.push(pid);
  }
  return found;
}

describe.skipIf(missing !== undefined)("test restores on gVisor", () => {
  test("test-restore a snapshot with its processes, on request and automatically, and leave nothing", async () => {
    const store = await temporaryFolder();
    const flags = ["--prove-snapshots"];
    const process = await ServerProcess.start({ store, flags });
    const api = new SnapshotClient({ httpUrl: process.url.replace(/^ws/, "http") });
    const box = await SandboxClient.create(api.server, { name: "box" });
    await box.spawn({ shell: "sleep 1000" });
    const { id } = await api.take(box.id);
    await eventually("it is proven", async () => (await api.get(id)).proven !== null, 60_000);
    expect((await api.get(id)).proven?.engine).toMatch(/^gvisor .*\d{8}/);
    const first = (await api.get(id)).proven?.at;
    const { body } = await api.call<SnapshotInfo>("POST", `/v1/snapshots/${id}/prove`);
    expect(body.proven?.at).not.toBe(first);
    await eventually("only the sandbox itself is left", async () => (await enginesOf(process)).length === 1, 30_000);
    expect(await box.exec({ shell: "echo on" })).toMatchObject({ stdout: "on\n" });
  });
});
