import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { IntegrityReport, SandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { flipMiddle } from "./integrity-lab.ts";
import { SandboxClient } from "./processes/support.ts";
import { SnapshotClient } from "./snapshot-client.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The test of damage on gVisor is skipped: ${missing}`);

describe.skipIf(missing !== undefined)("damage on gVisor", () => {
  test("in a pack with memory is found, and the next save of the running sandbox is intact and can be restored", async () => {
    const store = await temporaryFolder();
    const process = await ServerProcess.start({ store, flags: ["--image-cache-mb", "0"] });
    const api = new SnapshotClient({ httpUrl: process.url.replace(/^ws/, "http") });
    const box = await SandboxClient.create(api.server, { name: "box" });
    await box.exec({ shell: "echo kept > /workspace/file" });
    const save = async (body: object) => await box.call<SandboxRecord>("POST", "/checkpoint", body);
    const checkpoint = async (): Promise<string> => (await save({ leave_running: true })).body.checkpoint?.name ?? "";
    const first = await checkpoint();
    const names = await readdir(join(store, "packs"), { recursive: true });
    const packs = names.filter((name) => name.endsWith(".pack")).map((name) => join(store, "packs", name));
    const { id: snapshot } = await api.take(box.id);
    const scrub = async () => (await api.call<IntegrityReport>("POST", "/v1/scrub", { rate_mb: null })).body;
    expect(await scrub()).toMatchObject({ ok: true, images: { whole: 2 } });
    for (const pack of packs) await flipMiddle(pack);
    const report = await scrub();
    expect(report.problems.map(({ checkpoint: name, snapshot_id }) => name ?? snapshot_id).toSorted()).toEqual(
      [first, snapshot].toSorted(),
    );
    expect(report.damaged_blocks.length).toBe(packs.length);
    const second = await checkpoint();
    const { body } = await box.call<IntegrityReport>("POST", "/verify", { checkpoint: second });
    expect(body).toMatchObject({ ok: true, images: { whole: 1 } });
    await save({});
    expect((await box.call("POST", "/resume", {})).status).toBe(200);
    expect(await box.exec({ shell: "cat /workspace/file" })).toMatchObject({ stdout: "kept\n" });
  });
});
