import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BridgeDecoder } from "../../../src/backends/daytona/exec/bridge-decoder.ts";
import { BRIDGE, BRIDGE_MARK, CREDIT_BYTES } from "../../../src/backends/daytona/exec/bridge-script.ts";

/** Runs a program on this machine as inside a sandbox, and returns its lines and their meaning. */
async function run(
  script: string,
  program: readonly string[],
  next: (output: string) => string,
): Promise<{ readonly lines: readonly string[]; readonly output: string }> {
  const folder = join(tmpdir(), `.sandboxer-${randomUUID()}`);
  const argv = ["-c", script, BRIDGE_MARK, folder, "ab".repeat(16), tmpdir(), program[0] ?? "", ...program];
  const bridge = spawn("sh", argv, { stdio: ["pipe", "pipe", "pipe"] });
  const decoder = new BridgeDecoder();
  const exited = new Promise((resolve) => bridge.once("exit", resolve));
  let [output, said] = ["", ""];
  const take = (chunk: Buffer): void => {
    said += chunk.toString("latin1");
    for (const event of decoder.push(chunk)) {
      if (event.kind === "output") output += event.data.toString("latin1");
      if (event.kind === "started" || event.kind === "output") bridge.stdin.write(next(output));
      if (event.kind === "finished") bridge.stdin.write("q\n");
    }
  };
  // Each stream has lines of its own; one decoder reads both, as from the daemon's log.
  bridge.stdout.on("data", take);
  bridge.stderr.on("data", take);
  expect(await exited).toBe(0);
  return { lines: said.split("\n"), output };
}

test("the bridge counts bytes without base64 padding: many small pieces use no more credit than one large piece", async () => {
  const pieces = 20;
  // Enough for the pieces, of one byte each, and for the token at the end; not for the padding of base64.
  const script = BRIDGE.replaceAll(String(CREDIT_BYTES), String(2 * pieces));
  const newline = `i ${Buffer.from("\n").toString("base64")}\n`;
  const program = ["bash", "-c", "while read -r line; do printf x; done"];
  // The next piece is requested when the previous one has arrived, so that each is separate.
  const { output } = await run(script, program, ({ length }) => (length < pieces ? newline : "c\n"));
  expect(output).toBe("x".repeat(pieces));
});

test("no line is longer than every shell writes at once", async () => {
  const { lines, output } = await run(
    BRIDGE,
    ["head", "-c", "150000", "/dev/zero"],
    ({ length }) => `a ${length + CREDIT_BYTES}\n`,
  );
  expect(output).toBe("\0".repeat(150_000));
  expect(Math.max(...lines.map(({ length }) => length + 1))).toBeLessThanOrEqual(1024);
});
