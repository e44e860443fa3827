import type { EventRecord, OperationRecord, SandboxerError } from "@sandboxer/client";
import { fromWire } from "@sandboxer/client/transport";
import { useEffect, useState } from "preact/hooks";
import { onEvent } from "../../../live/events.ts";
import { operationOfEvent } from "../../../live/operations.ts";
import { asError, client } from "../../../session.ts";

export interface Timeline {
  readonly loaded: boolean;
  readonly error: SandboxerError | undefined;
  /** Oldest first. */
  readonly events: readonly EventRecord[];
  readonly operations: readonly OperationRecord[];
}

const NOTHING: Timeline = { loaded: false, error: undefined, events: [], operations: [] };
const PAGE = 1_000;
/** Events come in bursts; the chart is updated at most this often per second. */
const SETTLE_MS = 250;

/** The recorded history of a sandbox, and its new events. */
export function useTimeline(sandboxId: string): Timeline & { readonly reload: () => void } {
  const [timeline, setTimeline] = useState<Timeline>(NOTHING);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const end = new AbortController();
    const { signal } = end;
    // Events that arrive before the response are kept: by cursor, operations by id.
    const events = new Map<string, EventRecord>();
    const operations = new Map<string, OperationRecord>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (loaded: boolean, error?: SandboxerError): void => {
      timer = undefined;
      setTimeline({ loaded, error, events: [...events.values()], operations: [...operations.values()] });
    };
    let loaded = false;
    const stop = onEvent((event) => {
      if (event.sandboxId !== sandboxId) return;
      const operation = operationOfEvent(event);
      if (operation !== undefined) operations.set(operation.id, operation);
      // Progress events are not kept: their cursor belongs to another event.
      if (event.type !== "operation.progress") events.set(event.cursor, event);
      if (loaded) timer ??= setTimeout(() => show(true), SETTLE_MS);
    });
    load(sandboxId, signal).then(
      (found) => {
        if (signal.aborted) return;
        const heard = [...events];
        events.clear();
        for (const event of found.events) events.set(event.cursor, event);
        for (const [cursor, event] of heard) events.set(cursor, event);
        for (const operation of found.operations) {
          if (!operations.has(operation.id)) operations.set(operation.id, operation);
        }
        loaded = true;
        show(true);
      },
      (thrown: unknown) => signal.aborted || show(false, asError(thrown)),
    );
    return () => {
      stop();
      clearTimeout(timer);
      end.abort();
    };
  }, [sandboxId, attempt]);
  return { ...timeline, reload: () => setAttempt(attempt + 1) };
}

async function load(
  sandboxId: string,
  signal: AbortSignal,
): Promise<{ readonly events: readonly EventRecord[]; readonly operations: readonly OperationRecord[] }> {
  const events: EventRecord[] = [];
  let cursor: string | undefined;
  do {
    const query = { sandbox_id: sandboxId, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const page = await client.call("events", { query }, { signal });
    events.push(...fromWire(page.items));
    // Events always have a next cursor: more may happen.
    cursor = page.items.length < PAGE ? undefined : (page.next_cursor ?? undefined);
  } while (cursor !== undefined);
  const operations: OperationRecord[] = [];
  for await (const operation of client.operations({ sandboxId, limit: PAGE }, { signal })) operations.push(operation);
  return { events, operations };
}
