import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { snapshotId } from "../targets/snapshot.ts";

export const proveCommand = defineCommand({
  arguments: "<snapshot>",
  examples: [
    "sandboxer prove before-upgrade",
    "sandboxer prove 3f2a9c01 && sandboxer rm web",
    "sandboxer prove before-upgrade --json | jq .proven.engine",
  ],
  details:
    "The server restores it into a sandbox that nobody can reach, without a network, hears whether that answers, and ends\n" +
    "it. The record says how it went, and so does the exit code.",
  async run(run) {
    const id = await snapshotId(await run.client(), run.argument(0));
    const proven = await operate(run, "proveSnapshot", { params: { id } });
    run.print(proven, (record) => `${record.id}\n`);
    run.say(`${proven.name ?? proven.id.slice(0, 8)} can be restored (${proven.proven?.engine ?? proven.backend}).`);
  },
});
