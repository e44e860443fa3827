import { defineCommand } from "../define-command.ts";
import { operate } from "../operate.ts";
import { pairOption } from "../options/parse.ts";
import { defined } from "../options/sandbox.ts";
import { sayCarried } from "../output/carried.ts";
import { nameOf } from "../output/sandboxes.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const moveCommand = defineCommand({
  arguments: "<sandbox>",
  examples: [
    "sandboxer move web --backend docker",
    "sandboxer move web --backend gvisor --image ''",
    "sandboxer move web --backend docker && sandboxer shell web",
  ],
  details:
    "Moves the workspace; memory and processes are lost. The sandbox keeps its id, name, labels, key and token. The old\n" +
    "copy is deleted once the new one runs. To move a sandbox to another server, use `sandboxer handoff`.",
  options: (command) =>
    command
      .requiredOption("-b, --backend <BACKEND>", "target backend")
      .option("--profile <PROFILE>", "use the placement and secrets of this profile")
      .option("--image <IMAGE>", "another root filesystem; empty for the backend's default")
      .addOption(pairOption("--input <KEY=VALUE>", "value of a backend parameter")),
  async run(run) {
    const id = await sandboxId(await run.client(), run.argument(0));
    const image = run.text("image");
    const body = {
      backend: run.text("backend") ?? "",
      ...defined({
        image: image === "" ? null : image,
        inputs: run.value<Record<string, string>>("input"),
        profile: run.text("profile"),
      }),
    };
    const moved = await operate(run, "moveSandbox", { params: { id }, body });
    run.print(moved, (record) => `${record.id}\n`);
    run.say(`${nameOf(moved)} is ${moved.state} (${moved.backend}); ${sayCarried(moved.carried)}.`);
  },
});
