import { resolve } from "node:path";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { checkedUrl, DEFAULT_URL } from "../api/connect.ts";
import { readContexts } from "../contexts/config-file.ts";
import type { Context } from "../contexts/context.ts";
import { editContexts } from "../contexts/edit.ts";
import { defineGroup } from "../define-command.ts";
import { defined } from "../options/sandbox.ts";
import { formatTable, visible } from "../output/table.ts";
import { nearNames } from "../suggest.ts";
import type { Run } from "../run.ts";

export const contextCommand = defineGroup(
  [
    "sandboxer context list",
    "sandboxer context add prod --server https://sandboxes.example.org --key-file ~/.config/sandboxer/prod.key",
    "sandboxer context use prod",
  ],
  {
    list: {
      local: true,
      summary: "List named servers.",
      aliases: ["ls"],
      examples: ["sandboxer context list", "sandboxer context ls", "sandboxer context list --json | jq -r .current"],
      async run(run) {
        const { contexts, current, path } = await readContexts(run.io);
        const items = [...contexts].map(([name, context]) => ({ name, ...context }));
        run.print({ current: current ?? null, items }, () =>
          formatTable([
            ["", "NAME", "URL", "KEY"],
            ...items.map((item) => [item.name === current ? "*" : "", item.name, visible(item.url), keyOf(item)]),
          ]),
        );
        if (items.length === 0) run.say(`No contexts in ${path}; commands go to ${DEFAULT_URL}.`);
      },
    },
    use: {
      local: true,
      summary: "Make this server the default for all commands.",
      arguments: "<context>",
      examples: ["sandboxer context use prod", "sandboxer context use local", "sandboxer context use prod --json"],
      async run(run) {
        const name = run.argument(0);
        const { contexts } = await readContexts(run.io);
        requireContext(name, contexts);
        await editContexts(run.io, (document) => document.set("current_context", name));
        run.print({ current: name }, () => `${name}\n`);
      },
    },
    add: {
      local: true,
      summary: "Add a named server and the location of its key.",
      arguments: "<name>",
      examples: [
        "sandboxer context add local --server http://127.0.0.1:8080",
        "sandboxer context add prod --server https://sandboxes.example.org --key-env PROD_KEY --use",
        "sandboxer context add team --server https://sandboxes.example.org --key-command 'pass show sandboxer'",
      ],
      details: "Stores the location of the key, never the key itself.",
      options: (command) =>
        command
          .requiredOption("-s, --server <URL>", "URL of the server")
          .option("--key-file <PATH>", "file that contains the key")
          .option("--key-env <NAME>", "environment variable that contains the key")
          .option("--key-command <COMMAND>", "command that prints the key; arguments are separated by spaces")
          .option("--use", "make it the default for all commands")
          .option("--replace", "replace an existing context of this name"),
      run: add,
    },
    rm: {
      local: true,
      summary: "Remove a named server from this list. The server itself is not affected.",
      aliases: ["remove"],
      arguments: "<context>",
      examples: ["sandboxer context rm prod", "sandboxer context rm local", "sandboxer context remove team"],
      async run(run) {
        const name = run.argument(0);
        const { contexts, current } = await readContexts(run.io);
        requireContext(name, contexts);
        await editContexts(run.io, (document) => {
          document.deleteIn(["contexts", name]);
          if (current === name) document.delete("current_context");
        });
        run.print({ removed: name }, () => `${name}\n`);
      },
    },
  },
);

async function add(run: Run): Promise<void> {
  const name = run.argument(0);
  const { contextNameSchema } = await import("../contexts/context.ts");
  if (!contextNameSchema.safeParse(name).success) {
    throw new SandboxerError("bad_request", `"${name}" is not a valid context name.`, {
      hint: "Use at most 64 letters, digits, dots, dashes and underscores.",
    });
  }
  const { contexts } = await readContexts(run.io);
  if (contexts.has(name) && !run.flag("replace")) {
    throw new SandboxerError("bad_request", `The context "${name}" already exists.`, { hint: "Use --replace." });
  }
  const keyFile = run.text("keyFile");
  const context = defined({
    url: checkedUrl(run.text("server") ?? ""),
    api_key_file: keyFile === undefined ? undefined : resolve(run.io.workingDirectory, keyFile),
    api_key_env: run.text("keyEnv"),
    api_key_command: run.text("keyCommand")?.split(/\s+/).filter(Boolean),
  });
  if (Object.keys(context).length > 2) {
    throw new SandboxerError("bad_request", "Give only one of --key-file, --key-env and --key-command.");
  }
  await editContexts(run.io, (document) => {
    document.setIn(["contexts", name], document.createNode(context));
    if (run.flag("use")) document.set("current_context", name);
  });
  run.print({ name, ...context }, () => `${name}\n`);
}

function requireContext(name: string, contexts: ReadonlyMap<string, Context>): void {
  if (contexts.has(name)) return;
  const near = nearNames(name, [...contexts.keys()]);
  throw new SandboxerError("bad_request", `There is no context "${name}".`, {
    hint: near.length === 0 ? "See `sandboxer context list`." : `Did you mean ${near.join(", ")}?`,
    details: { given: name, suggestions: near },
  });
}

function keyOf({ api_key_file, api_key_env, api_key_command }: Context): string {
  if (api_key_file !== undefined) return `file ${visible(api_key_file)}`;
  if (api_key_env !== undefined) return `variable ${visible(api_key_env)}`;
  return api_key_command === undefined ? "none" : `command ${visible(api_key_command.join(" "))}`;
}
