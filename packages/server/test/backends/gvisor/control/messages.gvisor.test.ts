import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SandboxHandle, SnapshotPayload } from "../../../../src/backends/backend.ts";
import { selfTest } from "../../../../src/backends/gvisor/self-test.ts";
import { bash, run } from "../../contract/programs.ts";
import { describeGvisor } from "../support/describe-gvisor.ts";
import { GvisorFixture } from "../support/fixture.ts";

describeGvisor("the control socket", (engine) => {
  /** A backend with an engine that notes its commands. */
  function noting(control: "messages" | "commands"): { fixture: GvisorFixture; commands: () => string[] } {
    let log = "";
    const fixture: GvisorFixture = new GvisorFixture(engine, async () => {
      const folder = await fixture.folder();
      log = join(folder, "log");
      const path = join(folder, "runsc");
      writeFileSync(path, `#!/bin/sh\necho "$*" >> ${log}\nexec ${engine.path} "$@"\n`, { mode: 0o755 });
      return { engine: { ...engine, path, control } };
    });
    const commands = (): string[] =>
      readFileSync(log, "utf8")
        .split("\n")
        .flatMap((line) => / (pause|resume|checkpoint)( |$)/.exec(line)?.[1] ?? []);
    return { fixture, commands };
  }
  const ways = { messages: noting("messages"), commands: noting("commands") };

  test.each([
    ["messages", []],
    ["commands", ["pause", "resume", "checkpoint"]],
  ] as const)("driven by %s, a sandbox is paused, resumed, saved and restored alike", async (control, expected) => {
    const { fixture, commands } = ways[control];
    const handle = await fixture.acquire();
    await run(handle, bash("echo kept > /workspace/file"));
    await handle.freeze();
    await handle.thaw();
    const snapshot = await fixture.save(handle);
    expect((await run(handle, bash("cat /workspace/file"))).stdout).toBe("kept\n");
    const restored = await fixture.restore(snapshot);
    expect((await run(restored, bash("cat /workspace/file"))).stdout).toBe("kept\n");
    expect(commands()).toEqual(expected);
    await Promise.all([handle.destroy(), restored.destroy()]);
  });

  test("a save writes to a file that was prepared, and its image is as large and as good as any", async () => {
    const { fixture } = ways.messages;
    const { pagesDirectory } = fixture.opened.runDirectory;
    const handle = await fixture.acquire();
    const content = "head -c 20M /dev/urandom > /workspace/large; sha256sum < /workspace/large";
    const digest = (await run(handle, bash(content))).stdout;
    const before = [await fixture.save(handle), await fixture.save(handle)];
    const prepared = (): number[] =>
      readdirSync(pagesDirectory)
        .map((name) => statSync(join(pagesDirectory, name)))
        .filter(({ size }) => size > pagesOf(before[1]!).sizeBytes)
        .map(({ ino }) => ino);
    await expect.poll(prepared).toHaveLength(1);
    const [inode] = prepared();
    const snapshot = await savePrepared(handle, fixture, inode!);
    const pages = pagesOf(snapshot);
    expect(Math.abs(pages.sizeBytes - pagesOf(before[1]!).sizeBytes)).toBeLessThan(1024 * 1024);
    const restored = await fixture.restore(snapshot);
    expect((await run(restored, bash("sha256sum < /workspace/large"))).stdout).toBe(digest);
    await Promise.all([handle.destroy(), restored.destroy()]);
  });

  /** The file may have been seen before all of it was there. */
  async function savePrepared(handle: SandboxHandle, fixture: GvisorFixture, inode: number): Promise<SnapshotPayload> {
    for (;;) {
      const snapshot = await fixture.save(handle);
      if (statSync(pagesOf(snapshot).path).ino === inode) return snapshot;
    }
  }

  test("the self-test drives the engine by messages, and an unknown build by commands", async () => {
    const { path: runscPath, version, platform, agentPath } = engine;
    const directory = await ways.messages.fixture.folder();
    const options = { runscPath, platform, agentPath, directory, timeoutMs: 120_000 };
    expect(await selfTest({ ...options, version })).toMatchObject({ ok: true, control: "messages" });
    expect(await selfTest({ ...options, version: "unknown" })).toMatchObject({ ok: true, control: "commands" });
  });
});

function pagesOf({ members }: SnapshotPayload): SnapshotPayload["members"][number] {
  return members.find(({ name }) => name === "pages.img")!;
}
