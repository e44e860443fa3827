import { Option, type Command } from "commander";

/** Options for the server. The key has no flag: a command line is visible to every process. */
export function addConnectionOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--url <URL>",
        "URL of the server [$SANDBOXER_URL] (default: the context's, or http://127.0.0.1:8080)",
      ),
    )
    .addOption(new Option("--context <NAME>", "named server, see `sandboxer context list` [$SANDBOXER_CONTEXT]"))
    .addOption(
      new Option(
        "--encryption-key-file <PATH>",
        "file with your own encryption key [or the key itself in $SANDBOXER_ENCRYPTION_KEY]",
      ),
    )
    .addOption(new Option("--api-key-file <PATH>", "file with the API key [or the key itself in $SANDBOXER_API_KEY]"));
}
