import { PassThrough, Readable } from "node:stream";
import { expect, it } from "vitest";
import type { ExtensionProcess } from "../../../src/backends/extension/extension.ts";
import { LoggedProcess } from "../../../src/backends/extension/logged-process.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const MIB = 1 << 20;
const PIECES = 160;

/** A process that has ended while a child keeps printing: each MiB is filled with its number. */
function endedButPrinting() {
  let printed = 0;
  const pieces = function* () {
    while (printed < PIECES) yield Buffer.alloc(MIB, printed++);
  };
  const stdout = Readable.from(pieces(), { objectMode: false, highWaterMark: MIB });
  const process = {
    pid: 7,
    stdin: new PassThrough(),
    stdout,
    stderr: Readable.from([]),
    exited: new Promise((resolve) => void stdout.once("end", () => resolve({ code: 0, signal: null }))),
    untilEnded: async () => {},
    signal: async () => {},
    abandon: () => {},
  } as unknown as ExtensionProcess;
  return { process, printed: () => printed };
}

it("output after the end of a process waits for a reader, and stays in order", async () => {
  const { process, printed } = endedButPrinting();
  const home = { ready: async () => {}, failure: () => undefined, forget: () => {} };
  const logged = new LoggedProcess("key", process, home);
  let before = -1;
  await expect
    .poll(async () => {
      const isStill = before === printed();
      before = printed();
      await meanwhile(300);
      return isStill && printed() > 64;
    })
    .toBe(true);
  expect(printed()).toBeLessThan(80);
  let at = 0;
  for await (const { data, offset } of logged.output()) {
    const seen = Buffer.from(data);
    expect([seen[0], seen.at(-1)]).toEqual([Math.floor(at / MIB), Math.floor((at + seen.byteLength - 1) / MIB)]);
    at += seen.byteLength;
    logged.acknowledge(offset + seen.byteLength);
  }
  expect(at).toBe(PIECES * MIB);
});
