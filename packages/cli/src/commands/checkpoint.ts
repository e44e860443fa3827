import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { formatBytes } from "../output/bytes.ts";
import { nameOf } from "../output/sandboxes.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const checkpointCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer checkpoint web",
    "sandboxer checkpoint web && sandboxer attach web --url http://10.0.0.2:8080",
    "sandboxer checkpoint web --json | jq .checkpoint.size_bytes",
  ],
  details: "Files, memory and running programs are saved. `sandboxer attach` wakes it, here or elsewhere.",
  async run(run) {
    const id = await sandboxId(await run.client(), run.argument(0));
    const saved = await operate(run, "checkpointSandbox", { params: { id } });
    run.print(saved, (record) => `${record.id}\n`);
    const size =
      saved.checkpoint === null ? "" : ` (${saved.checkpoint.name}, ${formatBytes(saved.checkpoint.size_bytes)})`;
    run.say(`${nameOf(saved)} is saved${size}.`);
  },
});
