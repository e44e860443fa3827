import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { addRestoreOptions, readRestoreOptions } from "../options/sandbox.ts";
import { nameOf } from "../output/sandboxes.ts";
import { snapshotId } from "../targets/snapshot.ts";

export const restoreCommand = defineCommand({
  arguments: "<snapshot>",
  examples: [
    "sandboxer restore before-upgrade --name web-again",
    "sandboxer restore 3f2a9c01 --ttl 1h",
    'id=$(sandboxer restore before-upgrade) && sandboxer shell "$id"',
  ],
  details: "A new sandbox; its id goes to stdout. `sandboxer rewind` puts an existing one back.",
  options: addRestoreOptions,
  async run(run) {
    const id = await snapshotId(await run.client(), run.argument(0));
    const restored = await operate(run, "restoreSnapshot", { params: { id }, body: readRestoreOptions(run) });
    run.print(restored, (record) => `${record.id}\n`);
    run.say(`${nameOf(restored)} is ${restored.state} (${restored.backend}).`);
  },
});
