import { expect, test } from "vitest";
import { Metrics } from "../../src/gateway/metrics.ts";

const NONE = { states: () => ({}), dozing: () => 0, clients: () => 0, atRisk: () => 0 };

test("servers of one process share the metrics of the process, which are observed without end, and no others", () => {
  const [one, other] = [new Metrics(NONE).registry, new Metrics(NONE).registry];
  for (const name of ["sandboxer_nodejs_eventloop_lag_seconds", "sandboxer_nodejs_gc_duration_seconds"]) {
    expect(one.getSingleMetric(name)).toBeDefined();
    expect(one.getSingleMetric(name)).toBe(other.getSingleMetric(name));
  }
  expect(one.getSingleMetric("sandboxer_clients")).not.toBe(other.getSingleMetric("sandboxer_clients"));
});
