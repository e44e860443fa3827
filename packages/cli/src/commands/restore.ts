import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { addRestoreOptions, defined, readRestoreOptions } from "../options/sandbox.ts";
import { formatCarried, sayCarried } from "../output/carried.ts";
import { nameOf } from "../output/sandboxes.ts";
import { snapshotId } from "../targets/snapshot.ts";

export const restoreCommand = defineCommand({
  arguments: "<snapshot>",
  examples: [
    "sandboxer restore before-upgrade --name web-again",
    "sandboxer restore 3f2a9c01 --backend docker --explain",
    'id=$(sandboxer restore before-upgrade) && sandboxer shell "$id"',
  ],
  details: "Prints the id of the new sandbox. To return an existing sandbox to a snapshot, use `sandboxer rewind`.",
  options: (command) =>
    addRestoreOptions(command)
      .option("--profile <PROFILE>", "use the placement and secrets of this profile, for example another host")
      .option("-b, --backend <BACKEND>", "backend (default: the one it was captured on)")
      .option("--image <IMAGE>", "another root filesystem for a captured workspace; empty for the backend's default")
      .option("--explain", "show what would and would not be restored; change nothing"),
  async run(run) {
    const client = await run.client();
    const id = await snapshotId(client, run.argument(0));
    const elsewhere = defined({ backend: run.text("backend") });
    const profile = defined({ profile: run.text("profile") });
    if (run.flag("explain")) {
      run.print(await client.call("explainSnapshot", { params: { id }, query: elsewhere }), formatCarried);
      return;
    }
    const image = run.text("image");
    const body = {
      ...readRestoreOptions(run),
      ...elsewhere,
      ...profile,
      ...defined({ image: image === "" ? null : image }),
    };
    const restored = await operate(run, "restoreSnapshot", { params: { id }, body });
    run.print(restored, (record) => `${record.id}\n`);
    run.say(`${nameOf(restored)} is ${restored.state} (${restored.backend}); ${sayCarried(restored.carried)}.`);
  },
});
