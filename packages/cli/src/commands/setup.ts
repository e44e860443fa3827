import { Command } from "commander";
import { parseConfig, type ServerConfig } from "@sandboxer/server/config";
import { buildNewestEngine, prepareGvisor, type ReportStep, type SetupContext } from "@sandboxer/server/setup";
import { withExamples } from "../define-command.ts";
import type { Io } from "../io.ts";
import { stepJsonPrinter, stepPrinter } from "../output/steps.ts";
import { addSettingFlags, readSettingFlags } from "../setting-flags.ts";
import { exitOnSignal } from "../stop-signals.ts";

export function setupCommand(io: Io): Command {
  const command = withExamples(new Command(), [
    "sandboxer setup",
    "sandboxer setup --newest",
    "sandboxer setup --platform ptrace --json",
  ])
    .option("--newest", "build and test the newest supported runsc with Go")
    .option("--json", "print the result as JSON on stdout and the steps on stderr");
  addSettingFlags(command, ["platform", "runscPath", "cacheDirectory"]);
  return command.action(async (options: Record<string, unknown>) => {
    const json = options["json"] === true;
    const flags = readSettingFlags(options);
    const config = parseConfig({ flags, env: io.env, homeDirectory: io.homeDirectory, serving: false });
    exitOnSignal(io);
    const given = contextOf(config, json ? stepJsonPrinter(io) : stepPrinter(io));
    const newest = options["newest"] === true ? await buildNewestEngine(given) : undefined;
    const { engine, agentPath, platform } = await prepareGvisor({
      ...given,
      runscPath: newest?.path ?? given.runscPath,
    });
    if (json) io.stdout(`${JSON.stringify({ engine, agentPath, platform })}\n`);
    else {
      io.stdout(
        `\nrunsc     ${engine.path} (${engine.version}, ${engine.source})\nagent     ${agentPath}\nplatform  ${platform}\n`,
      );
      if (newest !== undefined) io.stdout("\nServers that start from now on use it for new sandboxes.\n");
    }
  });
}

export function contextOf(config: ServerConfig, report: ReportStep): SetupContext {
  const { cacheDirectory, searchPath, runscPath, platform } = config;
  return { cacheDirectory, searchPath, runscPath, platform, report };
}
