import { Option } from "commander";
import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { pairOption } from "../options/parse.ts";
import { defined } from "../options/sandbox.ts";
import { formatBytes } from "../output/bytes.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const snapshotCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer snapshot web --name before-upgrade",
    "sandboxer snapshot web --mode workspace --label release=3",
    'snapshot=$(sandboxer snapshot web) && sandboxer restore "$snapshot"',
  ],
  details: "Prints the id of the snapshot.",
  options: (command) =>
    command
      .option("-n, --name <NAME>", "name")
      .addOption(pairOption("-l, --label <KEY=VALUE>", "label"))
      .addOption(
        new Option("-m, --mode <MODE>", "what to capture (default: the most the backend supports)").choices([
          "full",
          "filesystem",
          "workspace",
        ]),
      ),
  async run(run) {
    const id = await sandboxId(await run.client(), run.argument(0));
    const body = defined({
      name: run.text("name"),
      labels: run.value<Record<string, string>>("label"),
      mode: run.value<"full" | "filesystem" | "workspace">("mode"),
    });
    const snapshot = await operate(run, "createSnapshot", { params: { id }, body });
    run.print(snapshot, (record) => `${record.id}\n`);
    run.say(`Snapshot taken (${snapshot.mode}, ${formatBytes(snapshot.size_bytes)}). The sandbox keeps running.`);
  },
});
