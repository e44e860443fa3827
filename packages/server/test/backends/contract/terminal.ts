import { expect, test } from "vitest";
import type { ContractContext } from "./context.ts";
import { bash, Follower, start } from "./programs.ts";

export function terminalContract(context: ContractContext): void {
  test("a terminal echoes, has one stream, and reports changes of its size", async () => {
    const handle = await context.shared();
    const code = 'read x; echo "got:$x" >&2; stty size; read x; stty size';
    const process = await start(handle, bash(code), { pty: { rows: 24, columns: 80 } });
    const output = new Follower(process);
    await process.writeStdin(Buffer.from("hello\n"));
    await output.until("got:hello\r\n");
    await output.until("24 80\r\n");
    await process.resize(40, 100);
    await process.writeStdin(Buffer.from("\n"));
    await output.until("40 100\r\n");
    await output.ended;
    expect((await process.exited).code).toBe(0);
    expect(output.text.startsWith("hello\r\n")).toBe(true);
    expect(output.chunks.every(({ stream }) => stream === "stdout")).toBe(true);
  });

  test("control-C interrupts, and closing stdin is an end of file", async () => {
    const handle = await context.shared();
    const pty = { rows: 24, columns: 80 };
    const sleeping = await start(handle, bash("echo ready; sleep 300"), { pty });
    await new Follower(sleeping).until("ready");
    await sleeping.writeStdin(Buffer.from("\x03"));
    const exit = await sleeping.exited;
    expect(exit.signal === 2 || exit.code === 130).toBe(true);
    const reading = await start(handle, bash("cat; echo over"), { pty });
    const output = new Follower(reading);
    await reading.closeStdin();
    await output.until("over");
    await output.ended;
  });
}
