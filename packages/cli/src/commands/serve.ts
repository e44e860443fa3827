import { Command } from "commander";
import { parseConfig } from "@sandboxer/server/config";
import { flushCompileCache } from "node:module";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { commandName, IS_CLONE } from "../command-name.ts";
import { withExamples } from "../define-command.ts";
import type { Io } from "../io.ts";
import { stepJsonPrinter, stepPrinter } from "../output/steps.ts";
import { addSettingFlags, ALL_SETTINGS, readSettingFlags } from "../setting-flags.ts";
import { exitOnSignal, untilStopped } from "../stop-signals.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../examples/hello.mjs", import.meta.url));

export function serveCommand(io: Io, setExitCode: (code: number) => void): Command {
  const command = withExamples(new Command(), [
    "sandboxer serve --default-store",
    "sandboxer serve --store s3://bucket/sandboxes --port 9000",
    "sandboxer serve --backend fake --port 0 --json",
  ])
    .option("--default-store", "store checkpoints in the data directory unless --store is given")
    .option("--json", "print JSON: the first line on stdout has the URL, logs go to stderr");
  return addSettingFlags(command, ALL_SETTINGS).action(async (options: Record<string, unknown>) => {
    const json = options["json"] === true;
    const config = parseConfig({ flags: readSettingFlags(options), env: io.env, homeDirectory: io.homeDirectory });
    const stopInterrupting = exitOnSignal(io);
    const { startServer } = await import("@sandboxer/server");
    const server = await startServer(config, { report: json ? stepJsonPrinter(io) : stepPrinter(io) });
    // Before anyone learns the address: otherwise a signal right after it would kill the server without saving.
    const stopped = untilStopped(server, io);
    stopInterrupting();
    if (json) io.stdout(`${JSON.stringify({ event: "listening", url: server.url })}\n`);
    else io.stdout(await greeting(server, io));
    // Node itself writes compiled code only at a clean end, and V8 has by then dropped what only a start needs.
    flushCompileCache();
    setExitCode(await stopped);
  });
}

async function greeting(
  server: { url: string; store: string | undefined; engine: string; console: boolean; open: boolean },
  io: Pick<Io, "env" | "workingDirectory">,
): Promise<string> {
  const { DEFAULT_URL } = await import("@sandboxer/client/transport");
  const command = commandName(io);
  const webSocketUrl = server.url.replace(/^http/, "ws");
  const where = server.url === DEFAULT_URL ? "" : `SANDBOXER_URL=${server.url} `;
  return [
    "",
    `Listening on  ${server.url}`,
    ...(server.console ? [`Console       ${server.url}/`] : []),
    `Store         ${server.store ?? "none: sandboxes cannot be checkpointed (set one with --store)"}`,
    `Engine        ${server.engine}`,
    ...(server.open
      ? [`Keys          none: every program on this machine can use the server (\`${command} keys create\`)`]
      : []),
    `Try           ${where}${command} run -- echo hello`,
    ...(IS_CLONE ? [`              node ${relative(io.workingDirectory, EXAMPLE)} ${webSocketUrl}`] : []),
    "",
  ]
    .map((line) => `${line}\n`)
    .join("");
}
