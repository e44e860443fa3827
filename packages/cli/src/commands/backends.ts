import { defineCommand } from "../define-command.ts";
import { formatTable, visible } from "../output/table.ts";

export const backendsCommand = defineCommand({
  examples: [
    "sandboxer backends",
    "sandboxer backends --json | jq '.items[0].capabilities'",
    "sandboxer backends --json | jq -r '.items[] | select(.ok) | .name'",
  ],
  async run(run) {
    const backends = await (await run.client()).call("listBackends", {});
    run.print(backends, ({ items }) => {
      const rows = items.map(({ name, ok, summary, remedy, default: isDefault }) => [
        name + (isDefault ? " (default)" : ""),
        ok ? "ok" : "not usable",
        visible(summary) + (ok || remedy === null ? "" : ` To fix it: ${visible(remedy)}`),
      ]);
      return `${formatTable([["NAME", "STATE", "SUMMARY"], ...rows])}\n${matrix(items)}`;
    });
  },
});

/** Capabilities in rows, backends in columns. */
function matrix(items: readonly { name: string; capabilities: Readonly<Record<string, string | boolean>> }[]): string {
  const names = [...new Set(items.flatMap(({ capabilities }) => Object.keys(capabilities)))].toSorted();
  const rows = names.map((name) => [name, ...items.map(({ capabilities }) => shown(capabilities[name]))]);
  return formatTable([["CAPABILITY", ...items.map(({ name }) => name.toUpperCase())], ...rows]);
}

function shown(value: string | boolean | undefined): string {
  if (typeof value === "string") return visible(value);
  return value === true ? "yes" : "no";
}
