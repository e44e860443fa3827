import { expect, test } from "vitest";
import type { ContractContext } from "./context.ts";
import { counter, eventually, Follower, start, untilStill } from "./programs.ts";

export function pauseContract(context: ContractContext): void {
  test("nothing runs while it is paused, and everything continues afterwards", async () => {
    const handle = await context.shared();
    const process = await start(handle, counter("/workspace/paused"));
    const output = new Follower(process);
    await output.until("3\n");
    await handle.freeze();
    await untilStill(() => output.chunks.length, "the end of output");
    const before = output.chunks.length;
    await handle.thaw();
    await eventually(() => output.chunks.length > before + 3, "output after the pause");
    await handle.ping();
    await process.signal(9, "group");
    await output.ended;
    const numbers = output.text.trim().split("\n").map(Number);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  });
}
