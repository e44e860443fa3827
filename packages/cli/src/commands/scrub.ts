import { Option } from "commander";
import type { IntegrityReport } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { rate } from "../options/parse.ts";
import { exitCodeOf, formatReport, formatScrubStatus } from "../output/integrity.ts";
import { ProgressLine } from "../output/progress.ts";
import type { Run } from "../run.ts";
import { addSettingFlags, readSettingFlags } from "../setting-flags.ts";
import { exitOnSignal } from "../stop-signals.ts";

export const scrubCommand = defineCommand({
  examples: [
    "sandboxer scrub",
    "sandboxer scrub --status",
    "sandboxer scrub --store /srv/store --rate 100",
    "sandboxer scrub --json | jq '.damaged_blocks[].images'",
  ],
  details:
    "The server reads its store at its configured rate. With --store or --default-store this command reads the store\n" +
    "itself; servers can keep running. Exits with 7 if something is damaged.",
  options: (command) => {
    command
      .addOption(new Option("--rate <MB>", "read at most this many MB per second; 0 for no limit").argParser(rate))
      .option("--no-limit", "read as fast as possible")
      .option("--status", "show whether a scrub is running and what the last one found")
      .option("--stop", "stop the running scrub; the next one continues where it stopped")
      .option("--default-store", "read the store that `npm start` uses, without a server");
    addSettingFlags(command, ["store", "dataDirectory"]);
  },
  async run(run) {
    if (run.flag("status")) return run.print(await (await run.client()).call("scrubStatus", {}), formatScrubStatus);
    if (run.flag("stop")) {
      await (await run.client()).call("stopScrub", {});
      return run.print({ stopped: true }, () => "");
    }
    const direct = run.text("store") !== undefined || run.flag("defaultStore");
    const report = direct ? await scrubHere(run) : await scrubThere(run);
    run.print(report, formatReport);
    if (report.next_step !== null) run.say(report.next_step);
    run.setExitCode(exitCodeOf(report));
  },
});

async function scrubThere(run: Run): Promise<IntegrityReport> {
  const rateMb = run.number("rate");
  // commander sets `limit` to true if --no-limit is not given.
  const body = rateMb !== undefined ? { rate_mb: rateMb } : run.flag("limit") ? {} : { rate_mb: null };
  return await operate(run, "scrubStore", { body });
}

async function scrubHere(run: Run): Promise<IntegrityReport> {
  const { parseConfig } = await import("@sandboxer/server/config");
  const given = ["store", "dataDirectory", "config"].map((name) => [name, run.text(name)] as const);
  const flags = readSettingFlags({ ...Object.fromEntries(given), defaultStore: run.flag("defaultStore") });
  const config = parseConfig({ flags, env: run.io.env, homeDirectory: run.io.homeDirectory, serving: false });
  const { store } = config;
  if (store === undefined) throw new SandboxerError("bad_request", "No store was given.");
  const { scrubStoreAt } = await import("@sandboxer/server/scrub");
  const stopInterrupting = exitOnSignal(run.io);
  const line = new ProgressLine(run.io, run.json);
  const startMs = performance.now();
  try {
    return await scrubStoreAt(
      { ...config, store },
      {
        rateMb: run.number("rate"),
        onProgress: ({ phase, doneBytes = null, totalBytes = null }) =>
          line.show({ what: phase, doneBytes, totalBytes, elapsedMs: performance.now() - startMs }),
      },
    );
  } finally {
    line.end();
    stopInterrupting();
  }
}
