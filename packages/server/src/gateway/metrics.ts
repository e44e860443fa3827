import type { SandboxState } from "@sandboxer/protocol";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Observer, OperationRecord } from "../manager/observing/observer.ts";
import type { IntegrityFigures } from "../manager/observing/integrity/scrubber.ts";
import type { OutputBudget } from "../manager/processes/output-budget.ts";
import type { WarmPoolRecord } from "../manager/lifecycle/warm-pool.ts";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

type CollectedFigures = Pick<OutputBudget, "heldBytes" | "limitBytes" | "waiting">;

export interface MetricsSources {
  readonly states: () => Readonly<Partial<Record<SandboxState, number>>>;
  readonly dozing: () => number;
  readonly clients: () => number;
  readonly collected?: () => CollectedFigures | undefined;
  readonly warm?: () => WarmPoolRecord | undefined;
  readonly atRisk: () => number;
  readonly integrity?: () => IntegrityFigures | undefined;
  /** Absent: the server has no certificate. */
  readonly certificateExpiresAtMs?: (() => number | undefined) | undefined;
}

/** The numbers of the process itself. Their timers and observers never end, so all servers of a process share them. */
let nodeMetrics: Registry | undefined;
function nodeRegistry(): Registry {
  if (nodeMetrics === undefined)
    collectDefaultMetrics({ register: (nodeMetrics = new Registry()), prefix: "sandboxer_" });
  return nodeMetrics;
}

/** Numbers for Prometheus: counts, states, durations, bytes. */
export class Metrics implements Pick<Observer, "operation" | "output"> {
  readonly registry = Registry.merge([nodeRegistry()]);
  readonly #durations = new Histogram({
    name: "sandboxer_operation_seconds",
    help: "Duration of create, restore, execute, checkpoint, live_checkpoint, filesystem_snapshot and destroy.",
    labelNames: ["operation", "outcome"],
    buckets: SECONDS,
    registers: [this.registry],
  });
  readonly #phases = new Histogram({
    name: "sandboxer_phase_seconds",
    help: "Duration of the parts of an operation.",
    labelNames: ["operation", "phase"],
    buckets: SECONDS,
    registers: [this.registry],
  });
  readonly #checkpointBytes = new Counter({
    name: "sandboxer_saved_bytes_total",
    help: "Bytes of saved images that were written.",
    labelNames: ["operation"],
    registers: [this.registry],
  });
  readonly #outputBytes = new Counter({
    name: "sandboxer_output_bytes_total",
    help: "Bytes of output sent to clients.",
    registers: [this.registry],
  });

  constructor({ integrity = () => undefined, warm = () => undefined, ...sources }: MetricsSources) {
    this.#gauges("sandboxer_sandboxes", "Sandboxes on this server, by state.", sources.states);
    this.#gauge(
      "sandboxer_sandboxes_dozing",
      "Running sandboxes that use no CPU because nothing runs in them.",
      sources.dozing,
    );
    this.#gauge("sandboxer_clients", "Clients connected over WebSocket.", sources.clients);
    const { collected = () => undefined } = sources;
    this.#gauge(
      "sandboxer_collected_output_bytes",
      "Memory used for program output that is collected for responses or waits to be sent.",
      () => collected()?.heldBytes ?? 0,
    );
    this.#gauge(
      "sandboxer_collected_output_limit_bytes",
      "Limit of that memory (--max-collected-mb).",
      () => collected()?.limitBytes ?? 0,
    );
    this.#gauge(
      "sandboxer_collected_output_waiting",
      "Responses (and their programs) that wait for that memory.",
      () => collected()?.waiting ?? 0,
    );
    this.#counter(
      "sandboxer_damaged_blocks_total",
      "Damaged blocks found by verify and scrub since the server started. A block may be counted more than once.",
      () => integrity()?.damagedBlocks ?? 0,
    );
    this.#counter(
      "sandboxer_scrubbed_bytes_total",
      "Bytes of the store read by verify and scrub.",
      () => integrity()?.scrubbedBytes ?? 0,
    );
    this.#gauge(
      "sandboxer_damaged_images",
      "Damaged checkpoints and snapshots found by the last full scrub.",
      () => integrity()?.damagedImages ?? 0,
    );
    this.#gauge(
      "sandboxer_last_scrub_timestamp_seconds",
      "End of the last full scrub in seconds since 1970; 0 if unknown.",
      () => (integrity()?.lastFullPassMs ?? 0) / 1000,
    );
    this.#gauges("sandboxer_warm_sandboxes", "Sandboxes in the warm pool that are ready for use.", () => {
      const { ready = 0, preparing = 0 } = warm() ?? {};
      return { ready, preparing };
    });
    const outcomes: Counter<"outcome"> = new Counter({
      name: "sandboxer_warm_sandboxes_total",
      help: "Warm pool sandboxes by outcome, and requests that found the pool empty (missed).",
      labelNames: ["outcome"],
      registers: [this.registry],
      collect: () => {
        const { handed_out = 0, missed = 0, failed = 0, expired = 0 } = warm() ?? {};
        outcomes.reset();
        for (const [outcome, count] of Object.entries({ handed_out, missed, failed, expired })) {
          outcomes.inc({ outcome }, count);
        }
      },
    });
    const { certificateExpiresAtMs: expiresAtMs } = sources;
    if (expiresAtMs !== undefined)
      this.#gauge(
        "sandboxer_certificate_expiry_timestamp_seconds",
        "End of the validity of the TLS certificate in seconds since 1970; only on servers with --tls-cert.",
        () => (expiresAtMs() ?? 0) / 1000,
      );
    this.#gauge("sandboxer_sandboxes_at_risk", "Sandboxes on this server whose max_loss is not met.", sources.atRisk);
  }

  operation(record: OperationRecord): void {
    const { operation, outcome, elapsedMs, phases = {}, sizeBytes } = record;
    this.#durations.observe({ operation, outcome }, elapsedMs / 1000);
    for (const [phase, ms] of Object.entries(phases)) this.#phases.observe({ operation, phase }, ms / 1000);
    if (sizeBytes !== undefined) this.#checkpointBytes.inc({ operation }, sizeBytes);
  }

  output(bytes: number): void {
    this.#outputBytes.inc(bytes);
  }

  #gauge(name: string, help: string, read: () => number): void {
    const gauge: Gauge = new Gauge({ name, help, registers: [this.registry], collect: () => gauge.set(read()) });
  }

  /** By state. */
  #gauges(name: string, help: string, read: () => Readonly<Record<string, number>>): void {
    const gauge: Gauge<"state"> = new Gauge({
      name,
      help,
      labelNames: ["state"],
      registers: [this.registry],
      collect: () => {
        gauge.reset();
        for (const [state, count] of Object.entries(read())) gauge.set({ state }, count);
      },
    });
  }

  #counter(name: string, help: string, read: () => number): void {
    const counter: Counter = new Counter({
      name,
      help,
      registers: [this.registry],
      collect: () => {
        counter.reset();
        counter.inc(read());
      },
    });
  }
}
