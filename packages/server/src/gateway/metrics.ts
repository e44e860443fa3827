import type { SandboxState } from "@sandboxer/protocol";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Observer, OperationRecord } from "../manager/observing/observer.ts";
import type { IntegrityFigures } from "../manager/observing/integrity/scrubber.ts";
import type { WarmPoolRecord } from "../manager/lifecycle/warm-pool.ts";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export interface MetricsSources {
  readonly states: () => Readonly<Partial<Record<SandboxState, number>>>;
  readonly dozing: () => number;
  readonly clients: () => number;
  readonly warm?: () => WarmPoolRecord | undefined;
  readonly atRisk: () => number;
  readonly integrity?: () => IntegrityFigures | undefined;
}

/** Numbers for Prometheus: counts, states, durations, bytes. */
export class Metrics implements Pick<Observer, "operation" | "output"> {
  readonly registry = new Registry();
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
    help: "Bytes of images written.",
    labelNames: ["operation"],
    registers: [this.registry],
  });
  readonly #outputBytes = new Counter({
    name: "sandboxer_output_bytes_total",
    help: "Bytes of output sent to clients.",
    registers: [this.registry],
  });

  constructor(sources: MetricsSources) {
    collectDefaultMetrics({ register: this.registry, prefix: "sandboxer_" });
    const sandboxes: Gauge<"state"> = new Gauge({
      name: "sandboxer_sandboxes",
      help: "Sandboxes on this server, by state.",
      labelNames: ["state"],
      registers: [this.registry],
      collect: () => {
        sandboxes.reset();
        for (const [state, count] of Object.entries(sources.states())) sandboxes.set({ state }, count);
      },
    });
    const dozing: Gauge = new Gauge({
      name: "sandboxer_sandboxes_dozing",
      help: "Running sandboxes that take no processor, because nothing runs in them.",
      registers: [this.registry],
      collect: () => dozing.set(sources.dozing()),
    });
    const clients: Gauge = new Gauge({
      name: "sandboxer_clients",
      help: "Clients connected over WebSocket.",
      registers: [this.registry],
      collect: () => clients.set(sources.clients()),
    });
    this.#showIntegrity(sources.integrity ?? (() => undefined));
    this.#showWarm(sources.warm ?? (() => undefined));
    const atRisk: Gauge = new Gauge({
      name: "sandboxer_sandboxes_at_risk",
      help: "Sandboxes on this server whose max_loss cannot be kept.",
      registers: [this.registry],
      collect: () => atRisk.set(sources.atRisk()),
    });
  }

  #showIntegrity(figures: () => IntegrityFigures | undefined): void {
    const blocks: Counter = new Counter({
      name: "sandboxer_damaged_blocks_total",
      help: "Damaged blocks that verifying and scrubbing have found since the start; one may be found again.",
      registers: [this.registry],
      collect: () => {
        blocks.reset();
        blocks.inc(figures()?.damagedBlocks ?? 0);
      },
    });
    const bytes: Counter = new Counter({
      name: "sandboxer_scrubbed_bytes_total",
      help: "Bytes of the store that verifying and scrubbing have read.",
      registers: [this.registry],
      collect: () => {
        bytes.reset();
        bytes.inc(figures()?.scrubbedBytes ?? 0);
      },
    });
    const images: Gauge = new Gauge({
      name: "sandboxer_damaged_images",
      help: "Checkpoints and snapshots that the last full pass over the store found to be damaged.",
      registers: [this.registry],
      collect: () => images.set(figures()?.damagedImages ?? 0),
    });
    const last: Gauge = new Gauge({
      name: "sandboxer_last_scrub_timestamp_seconds",
      help: "When the last full pass over the store has ended, in seconds since 1970; 0: none is known of.",
      registers: [this.registry],
      collect: () => last.set((figures()?.lastFullPassMs ?? 0) / 1000),
    });
  }

  #showWarm(figures: () => WarmPoolRecord | undefined): void {
    const warm: Gauge<"state"> = new Gauge({
      name: "sandboxer_warm_sandboxes",
      help: "Sandboxes that were started ahead of the need and are nobody's yet.",
      labelNames: ["state"],
      registers: [this.registry],
      collect: () => {
        const { ready = 0, preparing = 0 } = figures() ?? {};
        warm.set({ state: "ready" }, ready);
        warm.set({ state: "preparing" }, preparing);
      },
    });
    const outcomes: Counter<"outcome"> = new Counter({
      name: "sandboxer_warm_sandboxes_total",
      help: "What became of sandboxes that were started ahead of the need, and requests that found none (missed).",
      labelNames: ["outcome"],
      registers: [this.registry],
      collect: () => {
        const { handed_out = 0, missed = 0, failed = 0, expired = 0 } = figures() ?? {};
        outcomes.reset();
        for (const [outcome, count] of Object.entries({ handed_out, missed, failed, expired })) {
          outcomes.inc({ outcome }, count);
        }
      },
    });
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
}
