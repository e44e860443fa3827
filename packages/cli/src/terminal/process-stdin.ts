import type { Stdin } from "../io.ts";

export function processStdin(): Stdin {
  return {
    // Accessing process.stdin opens it, which costs a few milliseconds and is not always wanted.
    get isTerminal() {
      return process.stdin.isTTY;
    },
    async *bytes() {
      try {
        for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) yield chunk;
      } finally {
        process.stdin.pause();
        process.stdin.unref?.();
      }
    },
  };
}
