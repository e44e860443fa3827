import { expect, test } from "vitest";
import type { OutputChunk } from "../../../src/backends/backend.ts";
import type { ContractContext } from "./context.ts";
import { bash, bytesOf, delay, finish, type Finished, Follower, run, start } from "./programs.ts";

const MEGABYTE = 1 << 20;

export function outputContract(context: ContractContext): void {
  let read: Promise<Finished> | undefined;
  /** A process whose output exceeds the log of any backend. */
  const longOutput = (): Promise<Finished> =>
    (read ??= context.shared().then((handle) => run(handle, bash("yes 0123456789abcde | head -c 1572864"))));

  test("both streams share one log, whose offsets have no gap", async () => {
    const handle = await context.shared();
    const { chunks, exit } = await run(handle, bash("for i in $(seq 1 50); do echo out $i; echo err $i >&2; done"));
    expect(new Set(chunks.map(({ stream }) => stream))).toEqual(new Set(["stdout", "stderr"]));
    expect(endOf(chunks, 0)).toBe(exit.outputEnd);
  });

  test("characters arrive complete, however they were written", async () => {
    const handle = await context.shared();
    const split = await run(handle, bash("printf '\\xe2\\x82'; sleep 0.2; printf '\\xac\\n'"));
    expect(split.stdout).toBe("€\n");
    const bulk = await run(handle, bash("yes 'aäö€😀' | head -n 20000"));
    expect(bulk.stdout).toBe("aäö€😀\n".repeat(20_000));
    const strict = new TextDecoder("utf-8", { fatal: true });
    for (const chunk of [...split.chunks, ...bulk.chunks]) expect(() => strict.decode(chunk.data)).not.toThrow();
  });

  test("invalid characters arrive as unchanged bytes", async () => {
    const handle = await context.shared();
    const { chunks } = await run(handle, bash("printf '\\xff\\x00\\xfe\\xc3'"));
    expect(Buffer.concat(bytesOf(chunks))).toEqual(Buffer.from([0xff, 0x00, 0xfe, 0xc3]));
  });

  test("a process whose output is not acknowledged blocks, and continues when it is", async () => {
    const handle = await context.shared();
    // More than a log keeps unread, and more than may be in flight to it.
    const process = await start(handle, bash("yes 0123456789abcde | head -c 2621440"));
    const idle = new Follower(process, { acknowledge: false });
    await quiet(idle);
    const received = endOf(idle.chunks, 0);
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThanOrEqual(MEGABYTE + (MEGABYTE >> 1));
    expect(process.exit).toBeUndefined();

    const { chunks, exit } = await finish(process);
    await idle.ended;
    expect(exit).toMatchObject({ code: 0, outputEnd: 2.5 * MEGABYTE });
    expect(endOf(chunks, 0)).toBe(2.5 * MEGABYTE);
    expect(Buffer.concat(bytesOf(chunks)).toString() === "0123456789abcde\n".repeat((2.5 * MEGABYTE) / 16)).toBe(true);
  });

  test("an endless writer can be killed while it is blocked", async () => {
    const handle = await context.shared();
    const process = await start(handle, bash("yes for ever"));
    await delay(200);
    expect(process.exit).toBeUndefined();
    await process.signal(9, "group");
    const { exit, chunks } = await finish(process);
    expect(exit.signal).toBe(9);
    expect(endOf(chunks, 0)).toBe(exit.outputEnd);
  });

  test("a second reader ends the first, and misses nothing", async () => {
    const handle = await context.shared();
    const process = await start(handle, bash('echo one; read x; echo "two $x"'));
    const first = new Follower(process, { acknowledge: false });
    await first.until("one");
    const second = new Follower(process, { acknowledge: false });
    await second.until("one");
    await first.ended;
    await process.writeStdin(Buffer.from("now\n"));
    await second.until("two now");
    await second.ended;
    expect(first.text).toBe("one\n");
    expect(second.text).toBe("one\ntwo now\n");
  });

  test("a reader may go back, and starts with unacknowledged output by default", async () => {
    const handle = await context.shared();
    const process = await start(handle, bash("echo one; echo two; echo three"));
    await process.exited;
    process.acknowledge(4);
    expect(process.acknowledged).toBe(4);
    const rest = await finish(process);
    expect(rest).toMatchObject({ stdout: "two\nthree\n" });
    expect(rest.chunks[0]?.offset).toBe(4);
    expect((await finish(process)).stdout).toBe("");
    expect((await finish(process, { from: 0 })).stdout).toBe("one\ntwo\nthree\n");
    expect((await finish(process, { from: 8 })).stdout).toBe("three\n");
  });

  test("a reader of dropped bytes starts at the oldest available byte", async () => {
    const { process, exit } = await longOutput();
    const { chunks } = await finish(process, { from: 0 });
    const oldest = chunks[0]?.offset ?? 0;
    expect(oldest).toBeGreaterThan(0);
    expect(oldest).toBeLessThan(exit.outputEnd);
    expect(endOf(chunks, oldest)).toBe(exit.outputEnd);
  });

  test("the log reports where it begins and ends", async () => {
    const { process, exit } = await longOutput();
    expect((await process.bounds()).end).toBe(exit.outputEnd);
    process.acknowledge(exit.outputEnd);
    const { start, end } = await process.bounds();
    expect(end).toBe(exit.outputEnd);
    const { chunks } = await finish(process, { from: 0 });
    expect(chunks[0]?.offset).toBe(start);
  });

  test("an aborted reader ends", async () => {
    const handle = await context.shared();
    const process = await start(handle, bash("echo ready; sleep 300"));
    const controller = new AbortController();
    const seen: OutputChunk[] = [];
    for await (const chunk of process.output({ signal: controller.signal })) {
      seen.push(chunk);
      controller.abort();
    }
    expect(seen).toHaveLength(1);
    await process.signal(9, "group");
    await process.exited;
  });
}

/** The offset after the last chunk; fails if a chunk does not follow the previous one. */
function endOf(chunks: readonly OutputChunk[], start: number): number {
  let end = start;
  for (const chunk of chunks) {
    expect(chunk.offset).toBe(end);
    end += chunk.data.length;
  }
  return end;
}

/** Until nothing has arrived for a while. */
async function quiet(follower: Follower): Promise<void> {
  for (let before = -1; before !== follower.chunks.length || before === 0;) {
    before = follower.chunks.length;
    await delay(500);
  }
}
