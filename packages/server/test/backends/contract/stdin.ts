import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import type { ContractContext } from "./context.ts";
import { bash, bytesOf, errorCode, finish, Follower, python, run, start } from "./programs.ts";

export function stdinContract(context: ContractContext): void {
  test("lines reach the process as they are written", async () => {
    const handle = await context.shared();
    const process = await start(handle, python("name = input()\nprint('hello ' + name)\nprint(input())"));
    const output = new Follower(process);
    await process.writeStdin(Buffer.from("wörld\n"));
    await output.until("hello wörld");
    await process.writeStdin(Buffer.from("bye\n"));
    await output.ended;
    expect(output.text).toBe("hello wörld\nbye\n");
    expect((await process.exited).code).toBe(0);
  });

  test("more than a megabyte is delivered, and the end is seen", async () => {
    const handle = await context.shared();
    // More than a log keeps unread, and more than any backend sends at once.
    const data = randomBytes(1_300_000);
    const process = await start(handle, bash("cat; echo -n end >&2"));
    const finished = finish(process);
    await process.writeStdin(data.subarray(0, 1_100_000));
    await process.writeStdin(data.subarray(1_100_000));
    await process.closeStdin();
    const { chunks, stderr, exit } = await finished;
    expect(exit.code).toBe(0);
    expect(stderr).toBe("end");
    expect(digestOf(bytesOf(chunks, "stdout"))).toBe(digestOf([data]));
  });

  test("concurrent writes keep their order", async () => {
    const handle = await context.shared();
    const process = await start(handle, bash("cat"));
    const finished = finish(process);
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index}\n`);
    await Promise.all(lines.map((line) => process.writeStdin(Buffer.from(line))));
    await process.closeStdin();
    expect((await finished).stdout).toBe(lines.join(""));
  });

  test("writing after the end, or to an exited process, is an error that explains it", async () => {
    const handle = await context.shared();
    const open = await start(handle, bash("cat > /dev/null; sleep 300"));
    await open.closeStdin();
    expect(await errorCode(open.writeStdin(Buffer.from("late\n")))).toBe("wrong_state");
    await open.signal(9, "group");
    await open.exited;
    const { process } = await run(handle, bash("echo done"));
    expect(await errorCode(process.writeStdin(Buffer.from("late\n")))).toBe("wrong_state");
  });
}

function digestOf(parts: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}
