import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BridgeDecoder } from "../../../src/backends/daytona/exec/bridge-decoder.ts";
import { BRIDGE, BRIDGE_MARK, CREDIT_BYTES } from "../../../src/backends/daytona/exec/bridge-script.ts";

test("the bridge counts bytes and not what base64 fills up: many small pieces use no more credit than one large", async () => {
  const pieces = 20;
  // Enough for the pieces, of one byte each, and for the token at the end; not for the three bytes that four letters hold.
  const script = BRIDGE.replaceAll(String(CREDIT_BYTES), String(2 * pieces));
  const program = ["bash", "-c", "while read -r line; do printf x; done"];
  const folder = join(tmpdir(), `.sandboxer-${randomUUID()}`);
  const bridge = spawn("sh", ["-c", script, BRIDGE_MARK, folder, "ab".repeat(16), tmpdir(), "bash", ...program], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const decoder = new BridgeDecoder();
  const exited = new Promise((resolve) => bridge.once("exit", resolve));
  const newline = `i ${Buffer.from("\n").toString("base64")}\n`;
  let output = "";
  const take = (chunk: Buffer): void => {
    for (const event of decoder.push(chunk)) {
      if (event.kind === "started") bridge.stdin.write(newline);
      // The next piece is asked for when the one before is here, so that each is one by itself.
      if (event.kind === "output")
        bridge.stdin.write((output += event.data.toString()).length < pieces ? newline : "c\n");
      if (event.kind === "finished") bridge.stdin.write("q\n");
    }
  };
  // Each stream has lines of its own; one decoder reads both, as from the daemon's log.
  bridge.stdout.on("data", take);
  bridge.stderr.on("data", take);
  expect(await exited).toBe(0);
  expect(output).toBe("x".repeat(pieces));
});
