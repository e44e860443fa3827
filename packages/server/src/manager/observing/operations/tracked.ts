import type { OperationKind } from "@sandboxer/protocol";
import type { CallOptions } from "../../../support/call-options.ts";
import type { KeyOptions } from "../../../checkpoints/data-keys.ts";
import type { TrackedContext } from "../../room-contexts.ts";
import type { RequestKeys } from "../../encryption.ts";
import type { OperationName } from "../observer.ts";
import type { Operation } from "./operation.ts";
import { Stopwatch } from "./stopwatch.ts";

/** The options of a verb. The operation, if the caller opened one, records the whole call. */
export interface VerbOptions extends CallOptions {
  readonly operation?: Operation;
  /** The caller; see `AcquireRequest`. */
  readonly tenant?: string;
  readonly encryption?: RequestKeys;
  /** Whether the caller can send the request to another server if that has more of the preferred labels; absent: no. */
  readonly mayPlace?: boolean;
}

/** Facts about the work for logs, metrics and the operation's record. */
interface Work {
  readonly operation: OperationName;
  readonly sandboxId: string;
  readonly backend: string;
  readonly reason?: string;
}

export interface Track {
  /** To pass on: progress is recorded in the operation. */
  readonly options: CallOptions & KeyOptions;
  /** Ends the current phase and records it under this name. */
  lap(phase: string): void;
  /** The processes inside were stopped for this long. */
  readonly paused: (ms: number) => void;
  sizeBytes?: number;
}

const KINDS: Readonly<Partial<Record<OperationName, OperationKind>>> = {
  create: "create",
  restore: "resume",
  checkpoint: "checkpoint",
  live_checkpoint: "checkpoint",
  filesystem_snapshot: "snapshot",
  snapshot: "snapshot",
  prove: "prove",
  rewind: "rewind",
  promote: "promote",
  move: "move",
  destroy: "destroy",
  recreate: "recreate",
};

/** Runs a piece of work and reports it, however it ends. */
export async function tracked<Result>(
  context: TrackedContext,
  work: Work,
  options: VerbOptions,
  run: (track: Track) => Promise<Result>,
): Promise<Result> {
  const { clock, observer } = context.options;
  const stopwatch = new Stopwatch(clock);
  const kind = KINDS[work.operation];
  const own = options.operation === undefined && kind !== undefined ? context.operations.open(kind, work) : undefined;
  const operation = options.operation ?? own;
  operation?.concerns({ sandboxId: work.sandboxId });
  const track: Track = {
    options: {
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      presentedKey: options.encryption?.presentedKey,
      onProgress: (progress) => {
        operation?.onProgress(progress);
        options.onProgress?.(progress);
      },
    },
    lap: (phase) => {
      stopwatch.lap(phase);
      operation?.lap(phase);
    },
    paused: (ms) => operation?.paused(ms),
  };
  try {
    const result = await run(track);
    const { elapsedMs, phases } = stopwatch;
    const size = track.sizeBytes === undefined ? {} : { sizeBytes: track.sizeBytes };
    observer.operation({ ...work, elapsedMs, outcome: "ok", ...size, phases });
    own?.finish({});
    return result;
  } catch (error) {
    observer.operation({ ...work, elapsedMs: stopwatch.elapsedMs, outcome: "error", error });
    own?.finish({ error });
    throw error;
  }
}
