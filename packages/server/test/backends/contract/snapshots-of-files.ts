import { expect, test } from "vitest";
import { type ContractContext, newRequest } from "./context.ts";
import { bash, countAbove, counter, readText, run, start } from "./programs.ts";

export function filesystemSnapshotContract(context: ContractContext): void {
  test("files are kept, processes are not, and the sandbox keeps running", async () => {
    const handle = await context.acquire();
    await start(handle, counter("/workspace/count"));
    await run(handle, bash("mkdir -p a/b; echo deep > 'a/b/with space'; ln -s a/b/with\\ space link"));
    await handle.files.write("/workspace/bytes", Buffer.from([0, 255, 10]), { mode: 0o640 });
    const count = await countAbove(handle, "/workspace/count", 2);
    const snapshot = await handle.snapshot(await context.folder(), { mode: "filesystem", leaveRunning: true });
    await countAbove(handle, "/workspace/count", count);

    const elsewhere = await context.openAnother();
    const restored = context.keep(await elsewhere.acquireFromSnapshot(newRequest(), snapshot));
    expect(await restored.processes()).toEqual([]);
    expect((await restored.processTable()).some(({ command }) => command.includes("count"))).toBe(false);
    expect(await readText(restored, "/workspace/a/b/with space")).toBe("deep\n");
    expect(await readText(restored, "/workspace/link")).toBe("deep\n");
    expect((await restored.files.stat("/workspace/bytes")).mode & 0o777).toBe(0o640);
    expect(Buffer.concat(await Array.fromAsync(restored.files.read("/workspace/bytes")))).toEqual(
      Buffer.from([0, 255, 10]),
    );
    expect((await run(restored, bash("echo works > a/b/new; cat a/b/new"))).stdout).toBe("works\n");
  });
}
