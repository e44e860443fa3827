import { Option, type Command } from "commander";

/** Where the server is. The key has no flag of its own: a command line is visible to every process. */
export function addConnectionOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--url <URL>", "the server [$SANDBOXER_URL] (default: the context's, or http://127.0.0.1:8080)"),
    )
    .addOption(new Option("--context <NAME>", "a server of `sandboxer context list` [$SANDBOXER_CONTEXT]"))
    .addOption(
      new Option(
        "--encryption-key-file <PATH>",
        "a file that holds your own encryption key [$SANDBOXER_ENCRYPTION_KEY: the key itself]",
      ),
    )
    .addOption(new Option("--api-key-file <PATH>", "a file that holds the key [$SANDBOXER_API_KEY: the key itself]"));
}
