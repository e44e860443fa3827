import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import type { Run } from "../run.ts";
import { findSavedState } from "../targets/saved-state.ts";

export const proveCommand = defineCommand({
  arguments: "<snapshot>",
  examples: [
    "sandboxer prove before-upgrade",
    "sandboxer prove 3f2a9c01 && sandboxer rm web",
    "sandboxer prove sandbox:web",
    "sandboxer prove web@checkpoint_1790000000000.img",
    "sandboxer prove before-upgrade --json | jq .proven.engine",
  ],
  details:
    "Give a snapshot, a sandbox (its newest checkpoint) or SANDBOX@CHECKPOINT. The sandbox itself is not affected.\n" +
    "The server restores the state into a temporary sandbox without network access, checks that it answers, and deletes\n" +
    "it. The exit code reports the result; for a snapshot, its record does too.",
  async run(run) {
    const target = await findSavedState(await run.client(), run.argument(0));
    if (target.kind === "snapshot") return await proveSnapshot(run, target.id);
    const body = target.checkpoint === undefined ? {} : { checkpoint: target.checkpoint };
    const found = await operate(run, "proveSandbox", { params: { id: target.id }, body });
    run.print(found, ({ checkpoint }) => `${checkpoint}\n`);
    run.say(`${found.checkpoint} can be restored (${found.proven.engine}).`);
  },
});

async function proveSnapshot(run: Run, id: string): Promise<void> {
  const proven = await operate(run, "proveSnapshot", { params: { id } });
  run.print(proven, (record) => `${record.id}\n`);
  run.say(`${proven.name ?? proven.id.slice(0, 8)} can be restored (${proven.proven?.engine ?? proven.backend}).`);
}
