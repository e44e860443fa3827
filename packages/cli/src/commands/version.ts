import { asSandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { formatFields } from "../output/table.ts";
import { version } from "../version.ts";

const PATIENCE_MS = 1000;

export const versionCommand = defineCommand({
  examples: ["sandboxer version", "sandboxer version --json | jq -r .server.version", "sandboxer version --client"],
  options: (command) => command.option("--client", "do not contact a server"),
  async run(run) {
    const client = await run.client();
    const server = run.flag("client")
      ? null
      : await client.call("serverInfo", {}, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch((error: unknown) => {
          run.say(`sandboxer: ${asSandboxerError(error).message}`);
          return null;
        });
    run.print({ client: version, url: client.url, server }, () =>
      formatFields({ client: version, server: server && `${server.version} at ${client.url.replace(/\/$/, "")}` }),
    );
  },
});
