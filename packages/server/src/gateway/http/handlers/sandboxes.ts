import { normalNetwork } from "@sandboxer/protocol";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Handlers } from "../handler.ts";
import { pageBehind } from "../page.ts";

export function sandboxesHandlers(manager: SandboxManager) {
  return {
    createSandbox: async ({ body, options }) => {
      const { sandbox, token } = await manager.create(body, options);
      return { ...manager.describe(sandbox), token };
    },
    acquireSandbox: async ({ body, options }) => {
      const { sandbox, tier, token } = await manager.acquire(body, options);
      return { ...manager.describe(sandbox), tier, token };
    },
    listSandboxes: ({ query }) => pageBehind(query, (page) => manager.list(query, page)),
    getSandbox: ({ params }) => manager.find(params.id),
    updateSandbox: ({ params, body, epoch }) => {
      const { idle_timeout: seconds, network: setting, ...amendments } = body;
      const network = setting === undefined ? undefined : normalNetwork(setting);
      const idleTimeoutMs = seconds === undefined ? undefined : seconds * 1000;
      return manager.amend(params.id, epoch, { ...amendments, idleTimeoutMs, network });
    },
    sandboxNetwork: ({ params }) => manager.network(params.id),
    previewRetention: ({ params, query, options }) => manager.previewRetention(params.id, query, options),
    destroySandbox: ({ params, epoch, options }) => manager.destroyById(params.id, epoch, options),
    checkpointSandbox: async ({ params, body, epoch, options }) => {
      const sandbox = await manager.running(params.id, epoch);
      return body?.leave_running === true ? manager.checkpoint(sandbox, options) : manager.pause(sandbox, options);
    },
    resumeSandbox: async ({ params, body, epoch, options }) => {
      const sandbox = await manager.resume({ sandboxId: params.id, checkpoint: body?.checkpoint, epoch }, options);
      return manager.describe(sandbox);
    },
    handoffSandbox: ({ params, body, epoch, caller, options: { operation } }) =>
      manager.handOff({
        sandboxId: params.id,
        to: body.to,
        epoch,
        caller: { authorization: caller.authorization },
        operation,
      }),
    extendTtl: ({ params, body, epoch }) =>
      manager.amend(params.id, epoch, { ttl: body.duration, on_expiry: body.on_expiry }),
    expireSandboxes: async ({ query }) => {
      const applied = query.apply === true;
      const { expired, failed } = await manager.expire(applied);
      return { applied, items: [...expired], failed: [...failed] };
    },
    recreateSandbox: async ({ params, epoch, options }) => {
      const sandbox = await manager.running(params.id, epoch);
      await manager.recreate(sandbox, options);
      return manager.describe(sandbox);
    },
    reachability: ({ params }) => manager.reachability(params.id),
    sandboxStats: ({ params }) => manager.usage.now(params.id),
    listUsage: async ({ query }) => ({ items: manager.usage.list(query) }),
    sandboxUsage: ({ params, query }) => manager.usage.of(params.id, query.since),
  } satisfies Partial<Handlers>;
}
