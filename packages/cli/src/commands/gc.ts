import { Command } from "commander";
import { type Keep, KEEP_HINT, parseKeep, type Retention, SandboxerError } from "@sandboxer/protocol";
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
    "sandboxer gc --store /srv/store --keep last=3,hourly=24,daily=7 --keep-snapshots daily=30",
    "sandboxer gc --store s3://bucket/sandboxes --json",
  ])
    .option("--apply", "remove the garbage; without this flag nothing changes")
    .option(
      "--keep <RULE>",
      "also remove old checkpoints of sandboxes without a retention rule: keep the newest N, or last=3,hourly=24,daily=7 [$SANDBOXER_KEEP_CHECKPOINTS]",
    )
    .option("--keep-snapshots <RULE>", "the same for unnamed snapshots [$SANDBOXER_KEEP_SNAPSHOTS]")
    .option("--default-store", "use the store that `npm start` uses")
    .option("--json", "print JSON with the key of every object");
  addSettingFlags(command, ["store", "dataDirectory", "encryptionKey", "encryptionOldKeys", "requireSealed"]);
  return command.action(async (options: Record<string, unknown>) => {
    const flags = readSettingFlags(options);
    const config = parseConfig({ flags, env: io.env, homeDirectory: io.homeDirectory, serving: false });
    const { store } = config;
    if (store === undefined) {
      throw new SandboxerError("bad_request", "No store was given.", {
        hint: "Give one with --store, or use --default-store for the store of `npm start`.",
      });
    }
    const apply = options["apply"] === true;
    const keep = keptOf(options, config);
    const stopInterrupting = exitOnSignal(io);
    const { collectGarbageAt } = await import("@sandboxer/server/garbage");
    const findings = await collectGarbageAt({
      config: { ...config, store },
      apply,
      keep,
      warn: (message) => io.stderr(`${message}\n`),
    });
    stopInterrupting();
    const summary = summarize(findings);
    if (options["json"] === true) {
      io.stdout(`${JSON.stringify({ applied: apply, keep, ...summary, ...findings })}\n`);
    } else io.stdout(formatFindings(findings, summary, apply));
  });
}

/** Only explicit settings: the servers of this store may keep more than the default. */
function keptOf(
  options: Record<string, unknown>,
  { keepCheckpoints, keepSnapshots, origins }: ServerConfig,
): Retention {
  const checkpoints =
    ruleOf("--keep", options["keep"]) ?? (origins.keepCheckpoints === "default" ? undefined : keepCheckpoints);
  const snapshots = ruleOf("--keep-snapshots", options["keepSnapshots"]) ?? keepSnapshots;
  return { ...(checkpoints === undefined ? {} : { checkpoints }), ...(snapshots === undefined ? {} : { snapshots }) };
}

function ruleOf(flag: string, given: unknown): Keep | undefined {
  if (typeof given !== "string") return undefined;
  const rule = parseKeep(given);
  if (rule !== undefined) return rule;
  throw new SandboxerError("bad_request", `flag ${flag}: "${given}" is not a retention rule`, {
    hint: KEEP_HINT,
  });
}
