import type { Readable } from "node:stream";
import { type EventRecord, SandboxerError } from "@sandboxer/protocol";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Operation } from "../../../manager/observing/operations/operation.ts";
import { eventStream, Followers } from "../event-stream.ts";
import type { StoredOperations } from "../stored-operations.ts";
import { type Handlers, StreamAnswer } from "../handler.ts";
import { pageOfPlaces, wholeList } from "../page.ts";

export interface ServerFacts {
  readonly version: string;
  readonly store: string | undefined;
  /** Also for those who follow events. */
  readonly maxClients: number;
}

interface SystemFacts extends ServerFacts {
  readonly storedOperations: StoredOperations | undefined;
}

export function systemHandlers(manager: SandboxManager, facts: SystemFacts) {
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
      const operation = manager.operations.find(params.id);
      if (operation === undefined && facts.storedOperations !== undefined) {
        return facts.storedOperations.get(params.id, caller);
      }
      if (operation === undefined)
        throw new SandboxerError("operation_not_found", `This server has no operation ${params.id}.`);
      await endedWithin(operation, (query.wait ?? 0) * 1000, signal);
      return operation.recordFor(caller.id);
    },
    events: async ({ query, signal, accepts, caller, lastEventId }) => {
      // A client that reconnects uses its first URL.
      const cursor = lastEventId ?? query.cursor;
      const wanted = ({ sandbox_id, type }: EventRecord): boolean =>
        (query.sandbox_id === undefined || sandbox_id === query.sandbox_id) &&
        (query.type === undefined || type === query.type || type.startsWith(`${query.type}.`));
      const { sandbox_id: sandboxId } = query;
      if (query.follow === true || accepts("text/event-stream")) {
        const { end } = manager.events;
        const earlier =
          sandboxId === undefined || cursor === undefined
            ? undefined
            : { events: await manager.timeline(sandboxId, cursor), end };
        const hasMoved = sandboxId === undefined ? undefined : () => isElsewhere(manager, sandboxId);
        const open = (): Readable => eventStream(manager.events, { cursor, earlier, hasMoved, wanted, signal });
        return new StreamAnswer("text/event-stream", followers.admitted(caller.id, open), {
          "cache-control": "no-store",
        });
      }
      const all = sandboxId === undefined ? manager.events.after(cursor) : await manager.timeline(sandboxId, cursor);
      const items = all.filter(wanted).slice(0, query.limit);
      return { items, next_cursor: items.at(-1)?.cursor ?? cursor ?? null };
    },
    verifySnapshot: ({ params, options }) => manager.integrity.verifySnapshot(params.id, options),
    verifySandbox: ({ params, body, options }) => manager.integrity.verifySandbox(params.id, body?.checkpoint, options),
    scrubStore: ({ body, options }) => manager.integrity.run(body?.rate_mb, options),
    scrubStatus: () => manager.integrity.status(),
    stopScrub: async () => manager.integrity.stop(),
  } satisfies Partial<Handlers>;
}

/** Nothing is read from the store while the sandbox is here. */
async function isElsewhere(manager: SandboxManager, sandboxId: string): Promise<boolean> {
  return manager.epochOf(sandboxId) === undefined && (await manager.ownerElsewhere(sandboxId)) !== undefined;
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
