import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Handlers } from "../handler.ts";

export function processesHandlers(_manager: SandboxManager): Partial<Handlers> {
  return {};
}
