import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { SandboxHandle } from "../../../../src/backends/backend.ts";
import { newRequest } from "../../contract/context.ts";
import { bash, countAbove, counter, eventually, python, run, start } from "../../contract/programs.ts";
import { describeGvisor } from "../support/describe-gvisor.ts";
import { SavedState, WarmLab } from "./warm-lab.ts";

const TENANT = "key:1";

describeGvisor("saved states that are loaded ahead of the need", (engine) => {
  /** A saved state with this work done in it, which was requested before. */
  async function prepare(work: (handle: SandboxHandle) => Promise<unknown>, mode: "full" | "filesystem" = "full") {
    const lab = await WarmLab.open(engine);
    const handle = await lab.acquire();
    await work(handle);
    const state = await SavedState.of(handle, mode);
    const take = (tenant = TENANT, env: Record<string, string> = {}): Promise<SandboxHandle | undefined> =>
      lab.backend.takePrepared({ ...newRequest({ env }), tenant }, state);
    const loaded = async (): Promise<void> => {
      await eventually(() => state.loads > 0 && lab.figures.preparing === 0, "a state that was loaded");
    };
    return { lab, handle, state, take, loaded };
  }

  test("nothing is preloaded for the first request; from the second on, the next one is", async () => {
    const { lab, state, take, loaded } = await prepare((handle) => run(handle, bash("echo kept > /workspace/file")));
    expect(await take()).toBeUndefined();
    await lab.untilReady(1);
    expect(state.loads).toBe(0);
    expect(await take()).toBeUndefined();
    await loaded();
    const before = lab.figures.handedOut;
    const handle = await take(TENANT, { WORD: "mine" });
    expect(lab.figures.handedOut).toBe(before + 1);
    const facts = bash("cat /workspace/file /run/sandboxer/generation; hostname; echo $WORD");
    expect((await run(handle!, facts)).stdout).toBe(`kept\n1\nsandbox-${handle!.sandboxId.slice(0, 8)}\nmine\n`);
  });

  test("its processes are frozen until somebody gets it, and then continue", async () => {
    const file = "/workspace/count";
    const {
      handle: original,
      take,
      loaded,
    } = await prepare(async (handle) => {
      await start(handle, counter(file), { key: "counter" });
      await countAbove(handle, file, 5);
    });
    const saved = await countAbove(original, file, 0);
    await take();
    await take();
    await loaded();
    // The saved count grows far enough to show if the preloaded copy had run meanwhile.
    await countAbove(original, file, (await countAbove(original, file, 0)) + 80);
    const handle = (await take())!;
    const found = await countAbove(handle, file, 5);
    expect(found).toBeLessThan(saved + 50);
    expect((await handle.processes()).map(({ key }) => key)).toContain("counter");
    await countAbove(handle, file, found);
  });

  test("two preloaded sandboxes differ in everything that must be unique", async () => {
    const { lab, state, take, loaded } = await prepare((handle) => run(handle, bash("true")));
    await take();
    await take();
    await loaded();
    const first = (await take())!;
    await eventually(() => state.loads >= 2 && lab.figures.preparing === 0, "another one");
    const handles = [first, (await take())!];
    const facts = python("import os, uuid; print(open('/etc/machine-id').read(), os.uname().nodename, uuid.uuid4())");
    const texts = await Promise.all(handles.map(async (handle) => (await run(handle, facts)).stdout));
    expect(new Set(texts.join(" ").trim().split(/\s+/)).size).toBe(6);
  });

  test("nobody gets a state that was preloaded for another caller", async () => {
    const { lab, take, loaded } = await prepare((handle) => run(handle, bash("true")));
    await take();
    await take();
    await loaded();
    const before = lab.figures.handedOut;
    expect(await take("key:2")).toBeUndefined();
    expect(lab.figures.handedOut).toBe(before);
    expect(await take()).toBeDefined();
  });

  test("snapshots of files are preloaded too", async () => {
    const write = bash("mkdir -p /workspace/deep && echo kept > /workspace/deep/file");
    const { take, loaded } = await prepare((handle) => run(handle, write), "filesystem");
    await take();
    await take();
    await loaded();
    const handle = (await take())!;
    const facts = bash("cat /workspace/deep/file /run/sandboxer/generation");
    expect((await run(handle, facts)).stdout).toBe("kept\n0\n");
  });

  test("a removed state leaves nothing, and a state that cannot be loaded causes no errors", async () => {
    const { lab, state, take, loaded } = await prepare((handle) => run(handle, bash("true")));
    await take();
    await take();
    await loaded();
    lab.backend.forgetPrepared(state.id);
    const before = lab.figures.handedOut;
    expect(await take()).toBeUndefined();
    expect(lab.figures.handedOut).toBe(before);
    state.failure = new Error(`gone ${randomUUID()}`);
    const { failed } = lab.figures;
    await take();
    await eventually(() => lab.figures.failed > failed, "a failure that was counted");
    expect(await take()).toBeUndefined();
  });
});
