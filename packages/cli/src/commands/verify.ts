import type { IntegrityReport } from "@sandboxer/protocol";
import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { exitCodeOf, formatReport } from "../output/integrity.ts";
import type { Run } from "../run.ts";
import { findSavedState } from "../targets/saved-state.ts";

export const verifyCommand = defineCommand({
  arguments: "<snapshot>",
  examples: [
    "sandboxer verify before-upgrade",
    "sandboxer verify sandbox:web",
    "sandboxer verify web@checkpoint_1790000000000.img",
    "sandboxer verify before-upgrade --json | jq '.damaged_blocks[].images'",
  ],
  details:
    "Give a snapshot, a sandbox (all its checkpoints) or SANDBOX@CHECKPOINT. Marks a snapshot as damaged, or clears\n" +
    "the mark if it is intact again. Exits with 7 if something is damaged.",
  async run(run) {
    const report = await verify(run, run.argument(0));
    run.print(report, formatReport);
    if (report.next_step !== null) run.say(report.next_step);
    run.setExitCode(exitCodeOf(report));
  },
});

async function verify(run: Run, given: string): Promise<IntegrityReport> {
  const target = await findSavedState(await run.client(), given);
  if (target.kind === "snapshot") return await operate(run, "verifySnapshot", { params: { id: target.id } });
  const body = target.checkpoint === undefined ? {} : { checkpoint: target.checkpoint };
  return await operate(run, "verifySandbox", { params: { id: target.id }, body });
}
