import type { EventRecord } from "@sandboxer/protocol";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Operation } from "../../../manager/observing/operations/operation.ts";
import { eventStream, Followers } from "../event-stream.ts";
import { type Handlers, StreamAnswer } from "../handler.ts";
import { pageOfPlaces, wholeList } from "../page.ts";

export interface ServerFacts {
  readonly version: string;
  readonly store: string | undefined;
  /** Also for those who follow events. */
  readonly maxClients: number;
}

export function systemHandlers(manager: SandboxManager, facts: ServerFacts) {
  const followers = new Followers(facts.maxClients);
  return {
    serverInfo: async ({ caller }) => ({
      ...manager.summary(),
      version: facts.version,
      store: facts.store ?? null,
      scope: caller.scope,
      has_key: caller.principal.kind === "key",
    }),
    listProfiles: async () => wholeList([...manager.profiles.list()]),
    getProfile: async ({ params }) => manager.profiles.get(params.name),
    listBackends: async () => wholeList(await manager.backends()),
    listInstances: async () => wholeList(await manager.instances()),
    listOperations: async ({ query }) => {
      const { sandbox_id, kind, state } = query;
      const records = manager.operations
        .records()
        .filter((record) => sandbox_id === undefined || record.sandbox_id === sandbox_id)
        .filter((record) => kind === undefined || record.kind === kind)
        .filter((record) => state === undefined || record.state === state);
      return pageOfPlaces(records, query, ({ id, started_at }) => ({ id, created_at: started_at }));
    },
    getOperation: async ({ params, query, signal, caller }) => {
      const operation = manager.operations.get(params.id);
      await endedWithin(operation, (query.wait ?? 0) * 1000, signal);
      return operation.recordFor(caller.id);
    },
    events: async ({ query, signal, accepts, caller, lastEventId }) => {
      // A client that reconnects uses its first URL.
      const cursor = lastEventId ?? query.cursor;
      const wanted = ({ sandbox_id, type }: EventRecord): boolean =>
        (query.sandbox_id === undefined || sandbox_id === query.sandbox_id) &&
        (query.type === undefined || type === query.type || type.startsWith(`${query.type}.`));
      if (query.follow === true || accepts("text/event-stream")) {
        const body = followers.admitted(caller.id, () => eventStream(manager.events, { cursor, wanted, signal }));
        return new StreamAnswer("text/event-stream", body, { "cache-control": "no-store" });
      }
      const found = manager.events.after(cursor).filter(wanted);
      const items = found.slice(0, query.limit);
      return { items, next_cursor: items.at(-1)?.cursor ?? cursor ?? null };
    },
    verifySnapshot: ({ params, options }) => manager.integrity.verifySnapshot(params.id, options),
    verifySandbox: ({ params, body, options }) => manager.integrity.verifySandbox(params.id, body?.checkpoint, options),
    scrubStore: ({ body, options }) => manager.integrity.run(body?.rate_mb, options),
    scrubStatus: () => manager.integrity.status(),
    stopScrub: async () => manager.integrity.stop(),
  } satisfies Partial<Handlers>;
}

/** Cleans up when the operation ends, the time is up, or the client disconnects. */
async function endedWithin({ running, ended }: Operation, ms: number, signal: AbortSignal): Promise<void> {
  if (!running || ms === 0 || signal.aborted) return;
  const enough = Promise.withResolvers<void>();
  const timer = setTimeout(enough.resolve, ms);
  signal.addEventListener("abort", () => enough.resolve(), { once: true });
  await Promise.race([ended, enough.promise]);
  clearTimeout(timer);
}
