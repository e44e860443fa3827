import { Command } from "commander";
import { SandboxerError } from "@sandboxer/protocol";
import { parseConfig, type ServerConfig } from "@sandboxer/server/config";
import { withExamples } from "../define-command.ts";
import type { Io } from "../io.ts";
import { formatFindings, summarize } from "../output/garbage.ts";
import { addSettingFlags, readSettingFlags } from "../setting-flags.ts";
import { exitOnSignal } from "../stop-signals.ts";

export function gcCommand(io: Io): Command {
  const command = withExamples(new Command(), [
    "sandboxer gc --default-store",
    "sandboxer gc --store /srv/store --keep 1 --apply",
    "sandboxer gc --store s3://bucket/sandboxes --json",
  ])
    .option("--apply", "remove it; without this nothing is changed")
    .option("--keep <N>", "also remove all but the newest N checkpoints of each sandbox [$SANDBOXER_KEEP_CHECKPOINTS]")
    .option("--default-store", "look at the store that `npm start` uses")
    .option("--json", "for programs: every object by its key");
  addSettingFlags(command, ["store", "dataDirectory"]);
  return command.action(async (options: Record<string, unknown>) => {
    const flags = readSettingFlags(options);
    const config = parseConfig({ flags, env: io.env, homeDirectory: io.homeDirectory, serving: false });
    const { store } = config;
    if (store === undefined) {
      throw new SandboxerError("bad_request", "No store is given.", {
        hint: "Name it with --store, or with --default-store for the one of `npm start`.",
      });
    }
    const apply = options["apply"] === true;
    const keepNewest = keptCheckpoints(options["keep"], config);
    const stopInterrupting = exitOnSignal(io);
    const { collectGarbageAt } = await import("@sandboxer/server/garbage");
    const findings = await collectGarbageAt({ store, apply, keepNewest });
    stopInterrupting();
    const summary = summarize(findings);
    if (options["json"] === true) {
      io.stdout(`${JSON.stringify({ applied: apply, keep: keepNewest ?? null, ...summary, ...findings })}\n`);
    } else io.stdout(formatFindings(findings, summary, apply));
  });
}

/** Only what somebody said: the servers of this store may keep more than the default. */
function keptCheckpoints(flag: unknown, { keepCheckpoints, origins }: ServerConfig): number | undefined {
  if (typeof flag !== "string") return origins.keepCheckpoints === "default" ? undefined : keepCheckpoints;
  if (/^[1-9]\d{0,8}$/.test(flag)) return Number(flag);
  throw new SandboxerError("bad_request", `flag --keep: "${flag}" must be an integer of at least 1`);
}
