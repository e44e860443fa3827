import { SandboxerError } from "@sandboxer/protocol/errors";
import { allItems } from "../api/pages.ts";
import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { nameOf } from "../output/sandboxes.ts";
import { sandboxId } from "../targets/sandbox.ts";
import { findSnapshot } from "../targets/snapshot.ts";

export const rewindCommand = defineCommand({
  arguments: "<snapshot>",
  examples: [
    "sandboxer rewind before-upgrade",
    "sandboxer rewind 3f2a9c01 --sandbox web",
    "sandboxer rewind before-upgrade --json | jq .state",
  ],
  details:
    "Rewinds the sandbox that the snapshot was taken from, or the one given with --sandbox. Later changes are lost.",
  options: (command) => command.option("-s, --sandbox <SANDBOX>", "sandbox to rewind"),
  async run(run) {
    const client = await run.client();
    const snapshot = await findSnapshot(client, run.argument(0));
    const named = run.text("sandbox");
    const id = named === undefined ? snapshot.sandbox_id : await sandboxId(client, named);
    if (named === undefined && !(await allItems(client, "listSandboxes")).some((sandbox) => sandbox.id === id)) {
      throw new SandboxerError("sandbox_not_found", `The sandbox ${id} of snapshot ${nameOf(snapshot)} was deleted.`, {
        hint: "Create a new sandbox with `sandboxer restore`, or name another one with --sandbox.",
      });
    }
    const rewound = await operate(run, "rewindSandbox", { params: { id }, body: { snapshot_id: snapshot.id } });
    run.print(rewound, (record) => `${record.id}\n`);
    run.say(`${nameOf(rewound)} was rewound to snapshot ${nameOf(snapshot)}.`);
  },
});
