import type { SandboxProcess } from "@sandboxer/client";
import { expect, test } from "vitest";
import type { Terminal } from "../../src/io.ts";
import { relay } from "../../src/process/relay.ts";
import { parseDetachKeys } from "../../src/terminal/detach-keys.ts";
import { fakeIo } from "../support/fake-io.ts";

const TERMINAL: Terminal = {
  size: () => ({ rows: 24, columns: 80 }),
  onResize: () => () => {},
  enterRawMode: () => () => {},
};

test.each([["typed\r\u0010\u0011"], ["typed\r", "\u0010", "\u0011"]])(
  "a user who types %j and leaves waits until the program's terminal has it",
  async (...chunks) => {
    const steps: string[] = [];
    const taken = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const process = {
      write: async (bytes: Uint8Array) => {
        if (bytes.length === 0) return;
        await taken.promise;
        steps.push(`taken ${Buffer.from(bytes).toString()}`);
      },
      detach: () => {
        steps.push("left");
        left.resolve();
      },
      async *chunks() {
        await left.promise;
        yield* [];
      },
    } as unknown as SandboxProcess;
    const stdin = (async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk);
    })();
    const io = fakeIo({}, { stdin, terminal: TERMINAL });
    const detachKeys = parseDetachKeys("ctrl-p,ctrl-q");
    const end = relay(io, process, { stdin: true, closeStdin: false, terminal: TERMINAL, detachKeys });
    setTimeout(taken.resolve, 50);
    expect(await end).toBeUndefined();
    expect(steps).toEqual(["taken typed\r", "left"]);
  },
);
