import { Metrics } from "../../packages/server/src/gateway/metrics.ts";

/** The metrics of prom-client about the process and Node itself, with our prefix. */
const OF_NODE = /^sandboxer_(process|nodejs)_/;

/** Every metric of sandboxer itself, as `/metrics` describes it. */
export async function metricsTable(): Promise<string> {
  const { registry } = new Metrics({
    states: () => ({}),
    dozing: () => 0,
    clients: () => 0,
    atRisk: () => 0,
    certificateExpiresAtMs: () => 0,
  });
  const metrics = (await registry.getMetricsAsJSON()).filter(({ name }) => !OF_NODE.test(name));
  const rows = metrics
    .toSorted((first, second) => first.name.localeCompare(second.name))
    .map(({ name, type, help }) => `| \`${name}\` | ${String(type)} | ${help} |`);
  return ["| name | type | meaning |", "|---|---|---|", ...rows].join("\n");
}
