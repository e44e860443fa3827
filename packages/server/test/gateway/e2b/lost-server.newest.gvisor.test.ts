import { Sandbox } from "@e2b/code-interpreter";
import { SandboxNotFoundError } from "e2b";
import { describe, expect, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`Tests of E2B's client and lost servers are skipped: ${missing}`);

/** The options of a client that knows one server only. */
function at({ url }: ServerProcess): { apiKey: string; apiUrl: string; sandboxUrl: string } {
  const address = `${url.replace(/^ws/, "http")}/e2b`;
  return { apiKey: "any", apiUrl: address, sandboxUrl: address };
}

describe.skipIf(missing !== undefined)("E2B's client on gVisor with two servers of a store", () => {
  test("calls reach the owner from anywhere, and another server continues when the owner is killed", async () => {
    const [store, dataHome] = [await temporaryFolder(), await temporaryFolder()];
    const owner = await ServerProcess.start({ store, dataHome });
    const other = await ServerProcess.start({ store, dataHome });
    const lifecycle = { onTimeout: "pause", autoResume: true } as const;
    const [paused, saved, automatic, unsaved] = await Promise.all([
      Sandbox.create(at(owner)),
      Sandbox.create(at(owner)),
      Sandbox.create({ ...at(owner), lifecycle }),
      Sandbox.create(at(owner)),
    ]);
    for (const sandbox of [paused, saved, automatic]) await sandbox.runCode("x = 41");
    const relayed = await Sandbox.connect(saved.sandboxId, at(other));
    expect((await relayed.runCode("x + 1")).text).toBe("42");
    expect((await relayed.commands.run("echo out; echo err >&2")).stdout).toBe("out\n");
    for (const sandbox of [paused, saved, automatic]) await sandbox.pause();
    for (const sandbox of [saved, automatic]) await sandbox.connect();
    await owner.killHard();
    const resumed = async (sandboxId: string): Promise<string | undefined> => {
      const sandbox = await Sandbox.connect(sandboxId, at(other));
      return (await sandbox.runCode("x + 1")).text;
    };
    const answer = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);
    await expect.poll(() => answer(resumed(paused.sandboxId))).toBe("42");
    await expect.poll(() => answer(resumed(saved.sandboxId))).toBe("42");
    // A request alone is enough here.
    const headers = { "e2b-sandbox-id": automatic.sandboxId };
    expect((await fetch(`${at(other).sandboxUrl}/health`, { headers })).status).toBe(204);
    expect(await resumed(automatic.sandboxId)).toBe("42");
    await expect.poll(() => answer(Sandbox.connect(unsaved.sandboxId, at(other)))).toBeInstanceOf(SandboxNotFoundError);
  });
});
