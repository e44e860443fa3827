import { defineCommand } from "../define-command.ts";
import { makeSandbox } from "../make-sandbox.ts";
import { addCreateOptions } from "../options/sandbox.ts";
import { nameOf } from "../output/sandboxes.ts";

export const createCommand = defineCommand({
  examples: [
    "sandboxer create --name web --ttl 4h",
    "sandboxer create --profile profile.gvisor-default --memory 512 --label team=ml",
    'id=$(sandboxer create) && sandboxer exec "$id" -- uname -a',
  ],
  details:
    "The id goes to stdout. With --json the whole record, with the token that is told once. With --key the sandbox that\n" +
    "has this key is taken up, or one made from its newest snapshot; one with this key that is made of something else is\n" +
    "destroyed.",
  options: addCreateOptions,
  async run(run) {
    const created = await makeSandbox(run);
    run.print(created, ({ id }) => `${id}\n`);
    const how = created.tier === "fresh" ? "" : `, ${created.tier}`;
    run.say(`${nameOf(created)} is ${created.state} (${created.backend}${how}).`);
  },
});
