import { Argument } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { COMPLETION_SCRIPTS } from "../completion/scripts.ts";
import { defineCommand } from "../define-command.ts";

export const completionCommand = defineCommand({
  local: true,
  examples: [
    "source <(sandboxer completion bash)",
    "sandboxer completion zsh > ~/.zfunc/_sandboxer",
    "sandboxer completion fish > ~/.config/fish/completions/sandboxer.fish",
  ],
  details: "Completes commands, options, and the names of sandboxes and snapshots (read from the server).",
  options: (command) =>
    command.addArgument(new Argument("<shell>", "the shell").choices(Object.keys(COMPLETION_SCRIPTS))),
  run(run) {
    const shell = run.argument(0);
    const script = COMPLETION_SCRIPTS[shell];
    if (script === undefined) throw new SandboxerError("bad_request", `There is no completion for ${shell}.`);
    run.print({ shell, script }, () => script);
  },
});
