import type { OperationRecordBody } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { ProgressLine } from "../output/progress.ts";
import { nameOf, shortId } from "../output/sandboxes.ts";
import { findSandbox, sandboxId } from "../targets/sandbox.ts";

export const promoteCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer promote fix-2",
    "sandboxer promote fix-2 --discard-others",
    "sandboxer promote fix-2 --into web --json | jq -r .former_snapshot_id",
  ],
  details:
    "The original keeps its id, name, key, token and ports, and gets the files, memory and processes of the fork. Its\n" +
    "former state is kept as a snapshot: `sandboxer rewind SNAPSHOT` returns to it. Prints the id of the original.",
  options: (command) =>
    command
      .option("--into <SANDBOX>", "the original, if it is not the sandbox that was forked directly")
      .option("--discard-others", "delete the other forks of the original too"),
  async run(run) {
    const client = await run.client();
    const winner = await findSandbox(client, run.argument(0));
    const named = run.text("into");
    const into = named === undefined ? winner.origin.sandbox_id : await sandboxId(client, named);
    if (into === null) {
      throw new SandboxerError("bad_request", `${nameOf(winner)} was created from scratch, so there is no original.`, {
        hint: "Promote a fork: `sandboxer tree` shows which sandbox comes from which.",
      });
    }
    const { sandboxHandle } = await import("../process/open-sandbox.ts");
    const { toWire } = await import("@sandboxer/client/transport");
    const handle = await sandboxHandle(run, winner.id, false);
    const line = new ProgressLine(run.io, run.json);
    const promoted = await handle
      .promote({
        into,
        discardOthers: run.flag("discardOthers"),
        onProgress: (operation) => line.operation(toWire<OperationRecordBody>(operation)),
      })
      .finally(() => line.end());
    run.print(toWire<object>(promoted), () => `${promoted.sandbox.id}\n`);
    run.say(`${nameOf(promoted.sandbox)} has the state of ${nameOf(winner)}.`);
    run.say(`Its former state is snapshot ${shortId(promoted.formerSnapshotId)}.`);
    const others = promoted.deleted.filter((id) => id !== winner.id).length;
    if (others > 0) run.say(`Deleted ${others} other ${others === 1 ? "fork" : "forks"}.`);
    for (const { id, message } of promoted.kept) run.say(`sandboxer: ${shortId(id)} was not deleted: ${message}`);
  },
});
