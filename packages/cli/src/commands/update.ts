import { Option } from "commander";
import type { Keep, Retention } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { formatKeep } from "@sandboxer/protocol/keep-text";
import { defineCommand } from "../define-command.ts";
import { durationMs, pairOption, several } from "../options/parse.ts";
import { defined, keepOption, maxLossOption, readMaxLoss, readRetention } from "../options/sandbox.ts";
import { formatRetentionPreview } from "../output/retention.ts";
import { findSandbox } from "../targets/sandbox.ts";

export const updateCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer update web --name web-old",
    "sandboxer update web --label team=ml --remove-label temporary",
    "sandboxer update web --idle-timeout 30m",
    "sandboxer update web --max-loss 5m",
    "sandboxer update web --keep-checkpoints last=3,hourly=24,daily=7",
    "sandboxer update web --keep-checkpoints 1 --dry-run",
  ],
  options: (command) =>
    command
      .option("-n, --name <NAME>", "another name")
      .addOption(new Option("--no-name", "no name"))
      .addOption(pairOption("-l, --label <KEY=VALUE>", "add or change a label"))
      .addOption(new Option("--remove-label <KEY>", "remove a label (several times)").argParser(several))
      .addOption(new Option("--idle-timeout <DURATION>", "how long it may do nothing").argParser(durationMs))
      .addOption(maxLossOption())
      .addOption(new Option("--no-max-loss", "promise nothing any more"))
      .addOption(keepOption("--keep-checkpoints", "checkpoints that stay"))
      .addOption(new Option("--no-keep-checkpoints", "as many checkpoints stay as the server says"))
      .addOption(keepOption("--keep-snapshots", "snapshots without a name that stay"))
      .addOption(new Option("--no-keep-snapshots", "as many of these stay as the server says"))
      .option("--dry-run", "say which checkpoints and snapshots these rules would remove; nothing is changed"),
  async run(run) {
    const client = await run.client();
    const { id, labels: before, retention } = await findSandbox(client, run.argument(0));
    if (run.flag("dryRun")) {
      const query = previewQuery(readRetention(run, retention));
      run.print(await client.call("previewRetention", { params: { id }, query }), formatRetentionPreview);
      return;
    }
    const added = run.value<Record<string, string>>("label");
    const removed = run.value<string[]>("removeLabel");
    const idleTimeoutMs = run.number("idleTimeout");
    const body = defined({
      name: run.value<boolean | string>("name") === false ? null : run.text("name"),
      labels: added === undefined && removed === undefined ? undefined : changed(before, added, removed),
      idle_timeout: idleTimeoutMs === undefined ? undefined : idleTimeoutMs / 1000,
      max_loss: readMaxLoss(run),
      retention: readRetention(run, retention),
    });
    if (Object.keys(body).length === 0) throw new SandboxerError("bad_request", "There is nothing to change.");
    const updated = await client.call("updateSandbox", { params: { id }, body });
    run.print(updated, (record) => `${record.id}\n`);
  },
});

function previewQuery(retention: Retention | null | undefined): { keep_checkpoints?: string; keep_snapshots?: string } {
  if (retention === undefined) return {};
  const text = (keep: Keep | undefined): string => (keep === undefined ? "server" : formatKeep(keep));
  return { keep_checkpoints: text(retention?.checkpoints), keep_snapshots: text(retention?.snapshots) };
}

function changed(
  before: Readonly<Record<string, string>>,
  added: Readonly<Record<string, string>> = {},
  removed: readonly string[] = [],
): Record<string, string> {
  const kept = Object.entries(before).filter(([name]) => !removed.includes(name));
  return { ...Object.fromEntries(kept), ...added };
}
