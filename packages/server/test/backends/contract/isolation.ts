import { expect, test } from "vitest";
import type { ContractContext } from "./context.ts";
import { bash, errorCode, run, start } from "./programs.ts";

export function isolationContract(context: ContractContext): void {
  test("two sandboxes do not see each other", async () => {
    const [first, second] = await Promise.all([context.acquire(), context.acquire()]);
    await run(first, bash("echo secret > /workspace/secret; echo secret > /tmp/secret"));
    await start(first, bash("sleep 4222"));
    for (const path of ["/workspace/secret", "/tmp/secret"]) {
      expect(await errorCode(second.files.stat(path))).toBe("file_not_found");
    }
    expect((await second.processTable()).some(({ command }) => command.includes("4222"))).toBe(false);
    expect(await second.processes()).toEqual([]);
    await first.destroy();
    await second.ping();
  });

  test("a deleted sandbox has ended for everyone", async () => {
    const handle = await context.acquire();
    const process = await start(handle, bash("echo one; sleep 300"));
    const reading = Array.fromAsync(process.output());
    reading.catch(() => undefined);
    await Promise.all([handle.destroy(), handle.destroy()]);
    await handle.destroy();
    expect(await handle.ended).toMatchObject({ reason: "destroyed" });
    expect(await errorCode(process.exited)).toBe("sandbox_failed");
    expect(await errorCode(reading)).toBe("sandbox_failed");
    const codes = await Promise.all([
      errorCode(handle.exec({ key: "late", argv: bash("echo") })),
      errorCode(handle.ping()),
      errorCode(handle.processes()),
      errorCode(handle.files.stat("/workspace")),
      errorCode(process.writeStdin(Buffer.from("x"))),
    ]);
    expect(new Set(codes)).toEqual(new Set(["sandbox_failed"]));
  });
}
