import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Handlers } from "../handler.ts";

export function usageHandlers(manager: SandboxManager): Pick<Handlers, "listUsage" | "sandboxUsage"> {
  return {
    listUsage: async ({ query }) => ({ items: manager.usage.list(query) }),
    sandboxUsage: ({ params, query }) => manager.usage.of(params.id, query.since),
  };
}
