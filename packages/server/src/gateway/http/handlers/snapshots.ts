import type { ResponseOf, Routes } from "@sandboxer/protocol";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Handlers } from "../handler.ts";
import { pageOfList } from "../page.ts";
import type { Placement } from "../placement.ts";

type CreatedRecord = ResponseOf<Routes["createSandbox"]>;

export function snapshotsHandlers(manager: SandboxManager, placement: Placement | undefined) {
  return {
    createSnapshot: ({ params, body, epoch, options }) =>
      manager.snapshots.capture(params.id, epoch, { ...body, reason: "request" }, options),
    listSnapshots: async ({ query }) => {
      const { limit, cursor, ...filter } = query;
      const { items, damaged } = await manager.snapshots.list(filter);
      return { ...pageOfList(items, { limit, cursor }), damaged: cursor === undefined ? damaged : [] };
    },
    getSnapshot: ({ params, query, signal, options: { encryption } }) =>
      manager.snapshots.get(params.id, {
        verify: query.verify === true,
        signal,
        presentedKey: encryption?.presentedKey,
      }),
    updateSnapshot: ({ params, body }) => manager.snapshots.amend(params.id, body),
    deleteSnapshot: ({ params }) => manager.snapshots.remove(params.id),
    proveSandbox: ({ params, body, options }) =>
      manager.snapshots.proveCheckpoint(params.id, body?.checkpoint, options),
    proveSnapshot: ({ params, options }) => manager.snapshots.prove(params.id, options),
    restoreSnapshot: async ({ params, body, options, message }) => {
      const manner = { isFork: placement?.isOfFork(message) === true };
      const { sandbox, token, carried } = await manager.snapshots.restore(params.id, body ?? {}, options, manner);
      return { ...manager.describe(sandbox), token, carried };
    },
    explainSnapshot: ({ params, query }) => manager.snapshots.explainRestore(params.id, query),
    moveSandbox: async ({ params, body, epoch, options }) => {
      const sandbox = await manager.running(params.id, epoch);
      const carried = await manager.move(sandbox, body, options);
      return { ...manager.describe(sandbox), carried };
    },
    diffSnapshots: ({ params, query, options: { encryption } }) =>
      manager.snapshots.diff(params.id, query.to, query.limit, { presentedKey: encryption?.presentedKey }),
    forkSandbox: async (call) => {
      const { params, body, epoch, options } = call;
      const sandbox = await manager.running(params.id, epoch);
      const { snapshotId, created } = await manager.fork(sandbox, body, options, placement?.copiesOf(call));
      const items = created.map((each) =>
        // The other server has checked its answer.
        "record" in each ? (each.record as CreatedRecord) : { ...manager.describe(each.sandbox), token: each.token },
      );
      return { snapshot_id: snapshotId, items };
    },
    rewindSandbox: async ({ params, body, epoch, options }) => {
      const sandbox = await manager.running(params.id, epoch);
      await manager.rewind(sandbox, body.snapshot_id, options);
      return manager.describe(sandbox);
    },
    promoteSandbox: ({ params, body, epoch, options }) =>
      manager.promote(
        { sandboxId: params.id, winner: body.winner, discardOthers: body.discard_others === true, epoch },
        options,
      ),
  } satisfies Partial<Handlers>;
}
