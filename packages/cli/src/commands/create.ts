import { defineCommand } from "../define-command.ts";
import { addCreateOptions, readCreateOptions } from "../options/sandbox.ts";
import { operate } from "../operate.ts";
import { nameOf } from "../output/sandboxes.ts";

export const createCommand = defineCommand({
  examples: [
    "sandboxer create --name web --ttl 4h",
    "sandboxer create --profile profile.gvisor-default --memory 512 --label team=ml",
    'id=$(sandboxer create) && sandboxer exec "$id" -- uname -a',
  ],
  details: "The id goes to stdout. With --json the whole record, with the token that is told once.",
  options: addCreateOptions,
  async run(run) {
    const created = await operate(run, "createSandbox", { body: readCreateOptions(run) });
    run.print(created, ({ id }) => `${id}\n`);
    run.say(`${nameOf(created)} is ${created.state} (${created.backend}).`);
  },
});
