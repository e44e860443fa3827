import { defineCommand } from "../define-command.ts";
import { formatTable, visible } from "../output/table.ts";
import { sandboxId } from "../targets/sandbox.ts";

export const portsCommand = defineCommand({
  arguments: "<sandbox>",
  examples: ["sandboxer ports web", "sandboxer ports web --json | jq '.items[].port'", "sandboxer ports 3f2a9c01"],
  details: "Open the URL of a port in a browser. Others can open it with a URL that `sandboxer url` prints.",
  async run(run) {
    const { sandboxHandle } = await import("../process/open-sandbox.ts");
    const sandbox = await sandboxHandle(run, await sandboxId(await run.client(), run.argument(0)), false);
    const items = await sandbox.ports();
    run.print({ items }, () =>
      formatTable([
        ["PORT", "ADDRESS", "PROCESS", "ACCESS", "URL"],
        ...items.map((item) => [
          String(item.port),
          visible(item.address),
          item.process === null ? "-" : `${item.process.pid} ${visible(item.process.command).slice(0, 40)}`,
          item.public ? "public" : "private",
          item.url,
        ]),
      ]),
    );
  },
});
