import { defineCommand } from "../define-command.ts";
import { pairs, shortId } from "../output/sandboxes.ts";
import { formatTable, visible } from "../output/table.ts";

export const instancesCommand = defineCommand({
  examples: [
    "sandboxer instances",
    "sandboxer instances --json | jq -r '.items[] | select(.alive) | .url'",
    "sandboxer instances --url http://10.0.0.2:8080",
  ],
  async run(run) {
    const instances = await (await run.client()).call("listInstances", {});
    run.print(instances, ({ items }) => {
      // Most servers have none.
      const hasLabels = items.some(({ labels }) => Object.keys(labels).length > 0);
      return formatTable([
        ["ID", "URL", "STATE", ...(hasLabels ? ["LABELS"] : []), "OWNS", "ASKED FOR", "NOTE"],
        ...items.map(({ id, url, here, alive, labels, frozen, frozen_reason, owns, handoffs }) => [
          visible(id),
          visible(url ?? "-"),
          `${alive ? (frozen === true ? "frozen" : "alive") : "dead"}${here ? " (this one)" : ""}`,
          ...(hasLabels ? [visible(pairs(labels)) || "-"] : []),
          String(owns.length),
          handoffs.map((handoff) => `${shortId(handoff.sandbox_id)} by ${visible(shortId(handoff.to))}`).join(", ") ||
            "-",
          visible(frozen_reason ?? ""),
        ]),
      ]);
    });
  },
});
