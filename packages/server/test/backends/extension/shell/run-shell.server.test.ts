import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Writable } from "node:stream";
import { expect, test } from "vitest";
import { runShell, type StartShell } from "../../../../src/backends/extension/shell/run-shell.ts";

const MEBIBYTE = 1 << 20;

interface LocalShell {
  readonly start: StartShell;
  /** The stdin of the last started shell. */
  stdin?: Writable;
}

function localShell(): LocalShell {
  const shell: LocalShell = {
    start: async (script, args) => {
      const child = spawn("sh", ["-c", script, "sh", ...args]);
      shell.stdin = child.stdin;
      return {
        pid: child.pid ?? 0,
        stdin: child.stdin,
        stdout: child.stdout,
        stderr: child.stderr,
        exited: once(child, "close").then(([code]: (number | null)[]) => ({
          code: code ?? undefined,
          signal: undefined,
        })),
        signal: async () => {},
        abandon: () => child.kill(),
      };
    },
  };
  return shell;
}

test("a large input is written as fast as it is read, and no listener is left", async () => {
  const shell = localShell();
  const listeners: number[] = [];
  async function* input(): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < 16; count++) {
      yield Buffer.alloc(MEBIBYTE);
      listeners.push(shell.stdin?.listenerCount("close") ?? -1);
    }
  }
  const { code, stdout } = await runShell(shell.start, "cat | wc -c", [], input());
  expect([code, Number(stdout.toString())]).toEqual([0, 16 * MEBIBYTE]);
  expect(new Set(listeners)).toEqual(new Set([listeners[0]]));
});

test("a program that ends before it has read its input is explained by its exit code", async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield Buffer.alloc(MEBIBYTE);
  }
  expect(await runShell(localShell().start, "echo no >&2; exit 3", [], endless())).toMatchObject({
    code: 3,
    stderr: "no\n",
  });
});
