import { existsSync } from "node:fs";
import { homedir } from "node:os";
import type { OperationRecordBody, ResponseOf, Routes } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../src/main/config.ts";
import { cachedEnginePath } from "../../../src/setup/engine/cache.ts";
import { PINNED_ENGINE_VERSION } from "../../../src/setup/engine/version.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { SandboxClient } from "../../gateway/http/processes/support.ts";
import { count, SnapshotClient, startCounter } from "../../gateway/http/snapshot-client.ts";

const { cacheDirectory } = parseConfig({ flags: {}, env: process.env, homeDirectory: homedir(), serving: false });
const PINNED = cachedEnginePath(cacheDirectory, PINNED_ENGINE_VERSION);
const NEWEST = process.env["SANDBOXER_TEST_RUNSC"] ?? "";
const missing = whyNoEngine() ?? (existsSync(PINNED) && NEWEST !== PINNED ? undefined : "There is only one engine.");
if (missing !== undefined) console.warn(`The test of engines side by side is skipped: ${missing}`);

const httpOf = (server: ServerProcess): { httpUrl: string } => ({ httpUrl: server.url.replace(/^ws/, "http") });

/** The engines of running sandboxes. */
async function running(server: ServerProcess): Promise<string[]> {
  const commands = await server.engineProcesses();
  return [PINNED, NEWEST].filter((path) => commands.some((command) => command.includes(` ${path} `)));
}

describe.skipIf(missing !== undefined)("engines side by side", () => {
  test("a sandbox that was paused on 20240729 resumes on it after the default changed, beside new ones on the newest", async () => {
    const [store, dataHome] = [await temporaryFolder(), await temporaryFolder()];
    const before = await ServerProcess.start({ store, dataHome, flags: ["--runsc", PINNED] });
    const old = await SandboxClient.create(httpOf(before), { name: "old" });
    const counter = await startCounter(old);
    expect([await count(old, counter), await count(old, counter)]).toEqual([1, 2]);
    expect(await running(before)).toEqual([PINNED]);
    await before.stop();

    const after = await ServerProcess.start({ store, dataHome });
    const api = new SnapshotClient(httpOf(after));
    const fresh = await SandboxClient.create(api.server, { name: "fresh" });
    expect(await running(after)).toEqual([NEWEST]);
    const again = api.sandbox(old.id);
    expect((await again.call("POST", "/resume")).status).toBe(200);
    expect(await count(again, counter)).toBe(3);
    expect(await running(after)).toEqual([PINNED, NEWEST]);
    expect((await fresh.exec({ shell: "echo new" })).stdout).toBe("new\n");

    // It keeps its engine: when paused again, forked, and test-restored.
    expect((await again.call("POST", "/checkpoint", {})).status).toBe(200);
    await expect.poll(() => running(after)).toEqual([NEWEST]);
    expect((await again.call("POST", "/resume")).status).toBe(200);
    expect(await count(again, counter)).toBe(4);
    const { items } = (await again.call<{ items: { id: string }[] }>("POST", "/fork", { count: 1 })).body;
    expect(await count(api.sandbox(items[0]?.id ?? ""), counter)).toBe(5);
    const proof = await again.call<{ proven: { engine: string } } & OperationRecordBody>("POST", "/prove", {});
    expect(proof.body.proven.engine).toBe(`gvisor ${PINNED_ENGINE_VERSION}`);

    const { body } = await api.http.call<ResponseOf<Routes["serverInfo"]>>("GET", "/v1/server");
    expect(body.engines).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ state: "default", platform: expect.any(String) }),
        expect.objectContaining({ version: PINNED_ENGINE_VERSION, state: "used", source: "cache" }),
      ]),
    );
  });
});
