import { allItems } from "../api/pages.ts";
import { defineCommand } from "../define-command.ts";
import { formatBytes } from "../output/bytes.ts";
import { nameOf, shortId } from "../output/sandboxes.ts";
import { formatTable, visible } from "../output/table.ts";
import { formatMs } from "../output/time.ts";
import { findSandbox } from "../targets/sandbox.ts";

export const statsCommand = defineCommand({
  arguments: "[sandbox...]",
  examples: ["sandboxer stats", "sandboxer stats web db", "sandboxer stats web --json | jq '.items[0].memory_bytes'"],
  details: "Without names, shows every sandbox that runs on this server.",
  async run(run) {
    const client = await run.client();
    const given = run.rest(0);
    const sandboxes =
      given.length === 0
        ? (await allItems(client, "listSandboxes", { state: "running" })).filter(({ owner }) => owner?.here !== false)
        : await Promise.all(given.map((name) => findSandbox(client, name)));
    const items = await Promise.all(
      sandboxes.map(async ({ id, name }) => ({ id, name, ...(await client.call("sandboxStats", { params: { id } })) })),
    );
    run.print({ items }, () =>
      formatTable([
        ["ID", "NAME", "MEMORY", "DISK", "CPU"],
        ...items.map((item) => [
          shortId(item.id),
          visible(nameOf(item)),
          formatBytes(item.memory_bytes),
          formatBytes(item.disk_bytes),
          formatMs(item.cpu_ms),
        ]),
      ]),
    );
  },
});
