import { Option } from "commander";
import type { Keep, OnExpiry, Retention } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { formatKeep } from "@sandboxer/protocol/keep-text";
import { defineCommand } from "../define-command.ts";
import { durationMs, pairOption, several } from "../options/parse.ts";
import {
  defined,
  keepOption,
  maxLossOption,
  onExpiryOption,
  preferOption,
  readAffinity,
  readMaxLoss,
  readRetention,
  requireOption,
  ttlOption,
} from "../options/sandbox.ts";
import { formatRetentionPreview } from "../output/retention.ts";
import { findSandbox } from "../targets/sandbox.ts";

export const updateCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer update web --name web-old",
    "sandboxer update web --label team=ml --remove-label temporary",
    "sandboxer update web --idle-timeout 30m",
    "sandboxer update web --ttl 4h --on-expiry delete",
    "sandboxer update web --max-loss 5m",
    "sandboxer update web --require pool=gpu",
    "sandboxer update web --keep-checkpoints last=3,hourly=24,daily=7",
    "sandboxer update web --keep-checkpoints 1 --dry-run",
  ],
  options: (command) =>
    command
      .option("-n, --name <NAME>", "new name")
      .addOption(new Option("--no-name", "remove the name"))
      .addOption(pairOption("-l, --label <KEY=VALUE>", "add or change a label"))
      .addOption(new Option("--remove-label <KEY>", "remove a label (repeatable)").argParser(several))
      .addOption(
        new Option("--idle-timeout <DURATION>", "pause or drop it after this long without activity").argParser(
          durationMs,
        ),
      )
      .addOption(ttlOption())
      .addOption(new Option("--no-ttl", "remove the lifetime"))
      .addOption(onExpiryOption())
      .addOption(maxLossOption())
      .addOption(new Option("--no-max-loss", "remove --max-loss"))
      .addOption(requireOption())
      .addOption(preferOption())
      .addOption(new Option("--no-affinity", "remove --require and --prefer"))
      .addOption(keepOption("--keep-checkpoints", "checkpoint retention"))
      .addOption(new Option("--no-keep-checkpoints", "use the server's checkpoint retention"))
      .addOption(keepOption("--keep-snapshots", "retention of unnamed snapshots"))
      .addOption(new Option("--no-keep-snapshots", "use the server's snapshot retention"))
      .option("--dry-run", "show which checkpoints and snapshots these rules would remove; change nothing"),
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
      ttl: run.value<boolean | string>("ttl") === false ? null : run.text("ttl"),
      on_expiry: run.value<OnExpiry>("onExpiry"),
      max_loss: readMaxLoss(run),
      affinity: run.value<boolean>("affinity") === false ? null : readAffinity(run),
      retention: readRetention(run, retention),
    });
    if (Object.keys(body).length === 0) throw new SandboxerError("bad_request", "Nothing to change was given.");
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
