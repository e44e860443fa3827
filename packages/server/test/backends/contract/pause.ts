import { expect, test } from "vitest";
import type { ContractContext } from "./context.ts";
import { counter, delay, eventually, Follower, start } from "./programs.ts";

export function pauseContract(context: ContractContext): void {
  test("nothing goes on while it is paused, everything afterwards", async () => {
    const handle = await context.shared();
    const process = await start(handle, counter("/workspace/paused"));
    const output = new Follower(process);
    await output.until("3\n");
    await handle.freeze();
    // What was under way when it was paused arrives.
    await delay(300);
    const before = output.chunks.length;
    await delay(500);
    expect(output.chunks.length).toBe(before);
    await handle.thaw();
    await eventually(() => output.chunks.length > before + 3, "output after the pause");
    await handle.ping();
    await process.signal(9, "group");
    await output.ended;
    const numbers = output.text.trim().split("\n").map(Number);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  });
}
