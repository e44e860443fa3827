import type { EventRecord } from "./records.ts";
import { anySignal, pause } from "./wire/abort.ts";
import type { Answer } from "./wire/call-types.ts";
import { isSandboxerError } from "./wire/errors.ts";
import { fromWire } from "./wire/naming.ts";
import { backoff } from "./wire/retry.ts";
import { readServerSentEvents } from "./wire/server-sent-events.ts";
import type { Transport } from "./wire/transport.ts";

export interface EventOptions {
  readonly sandboxId?: string | undefined;
  readonly type?: string | undefined;
  /** The position to continue from: `cursor` of the last received event. Default: only new events. */
  readonly cursor?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called when the connection is established, and when it is lost, with the cursor to continue from. */
  readonly onConnection?: ((connected: boolean, cursor: string | undefined) => void) | undefined;
}

/** Events as they happen. A lost connection is restored from the last cursor: no event is missed or repeated. */
export async function* followEvents(
  transport: Transport,
  { sandboxId, type, cursor: from, signal: given, onConnection }: EventOptions,
): AsyncGenerator<EventRecord, void, undefined> {
  const signal = anySignal(given, transport.signal);
  const waits = backoff();
  let cursor = from;
  for (let failures = 1; ; failures += 1) {
    const end = new AbortController();
    try {
      const response = await transport.openEvents(
        {
          query: {
            follow: true,
            ...(sandboxId === undefined ? {} : { sandbox_id: sandboxId }),
            ...(type === undefined ? {} : { type }),
            ...(cursor === undefined ? {} : { cursor }),
          },
        },
        { signal: anySignal(signal, end.signal) },
      );
      if (response.body === null) return;
      onConnection?.(true, cursor);
      for await (const { id, data } of readServerSentEvents(response.body)) {
        if (id !== undefined) cursor = id;
        if (data === undefined) continue;
        const event = JSON.parse(data) as Answer<"events">["items"][number];
        [cursor, failures] = [event.cursor, 0];
        yield fromWire(event);
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (isSandboxerError(error) && error.code !== "server_unreachable") throw error;
      if (isSandboxerError(error) && failures >= waits.attempts) throw error;
    } finally {
      end.abort();
      onConnection?.(false, cursor);
    }
    await pause(waits.delayMs(Math.max(1, failures)), signal);
  }
}
