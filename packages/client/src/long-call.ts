import type { ReconnectOptions } from "./processes.ts";
import type { OperationRecord } from "./records.ts";
import type { RoamingOptions } from "./sandbox-calls.ts";
import type { CallOptions, WireOptions } from "./wire/call-types.ts";
import { fromWire } from "./wire/naming.ts";

export interface LongCallOptions extends CallOptions {
  /** Called with the phase, the bytes and the time of the operation, about twice a second, and at its end. */
  readonly onProgress?: ((operation: OperationRecord) => void) | undefined;
  /** Makes a repeated call the same call. Made up when absent, so that repetitions of the client itself are safe. */
  readonly idempotencyKey?: string | undefined;
}

export interface SandboxHandleOptions extends RoamingOptions, ReconnectOptions {
  /** At the end of `await using`: saved instead of destroyed. */
  readonly keep?: boolean | undefined;
}

/** Takes the options of the call and of the handle out of settings that are given together with them. */
export function longCall<Settings extends LongCallOptions & SandboxHandleOptions>({
  signal,
  epoch,
  onProgress,
  idempotencyKey,
  autoResume,
  followOwner,
  keep,
  reconnectMs,
  silenceMs,
  ...rest
}: Settings): {
  call: WireOptions;
  handle: SandboxHandleOptions;
  rest: Omit<Settings, keyof LongCallOptions | keyof SandboxHandleOptions>;
} {
  return {
    call: {
      signal,
      epoch,
      idempotencyKey,
      ...(onProgress === undefined ? {} : { onProgress: (operation) => onProgress(fromWire(operation)) }),
    },
    handle: { autoResume, followOwner, keep, reconnectMs, silenceMs },
    rest,
  };
}
