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
    "Prints the id; with --json, the whole record including the token, which is shown only once. With --key, uses the\n" +
    "sandbox that has this key, or creates one from its newest snapshot. If the existing one has other settings (image,\n" +
    "profile, backend), it is deleted and created again.",
  options: addCreateOptions,
  async run(run) {
    const created = await makeSandbox(run);
    run.print(created, ({ id }) => `${id}\n`);
    const how = created.tier === "fresh" ? "" : `, ${created.tier}`;
    run.say(`${nameOf(created)} is ${created.state} (${created.backend}${how}).`);
  },
});
