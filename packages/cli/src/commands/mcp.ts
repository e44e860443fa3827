import { Readable, Writable } from "node:stream";
import { callbackify } from "node:util";
import { Option } from "commander";
import { defineCommand } from "../define-command.ts";

export const mcpCommand = defineCommand({
  examples: [
    "sandboxer mcp",
    "sandboxer mcp --tools core",
    "sandboxer mcp --url https://sandboxes.example --api-key-file key",
  ],
  details:
    "Your agent starts this command; it ends when the agent closes its stdin. The tools run commands in sandboxes,\n" +
    "edit files there, take checkpoints, compare, rewind and fork. A server offers the same at POST /mcp.",
  options: (command) =>
    command.addOption(
      new Option("--tools <SET>", "tools to offer: core, for agents with little room, or all")
        .choices(["core", "all"])
        .default("all"),
    ),
  async run(run) {
    const { serveMcpStdio } = await import("@sandboxer/mcp");
    const { io } = run;
    const stopped = new AbortController();
    const stopListening = io.onStopSignal(() => stopped.abort());
    await serveMcpStdio({
      transport: await run.client(),
      tools: run.text("tools") === "core" ? "core" : "all",
      stdin: Readable.from(io.stdin.bytes()),
      stdout: new Writable({
        write: callbackify(async (chunk: Uint8Array, _encoding: string) => {
          if (!(await io.writeBytes("stdout", chunk))) throw new Error("Nobody reads the answers.");
        }),
      }),
      signal: stopped.signal,
      onFailure: ({ message }) => io.stderr(`sandboxer: ${message}\n`),
    });
    stopListening();
  },
});
