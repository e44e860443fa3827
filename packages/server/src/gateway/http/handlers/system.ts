import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Handlers } from "../handler.ts";

export function systemHandlers(_manager: SandboxManager): Partial<Handlers> {
  return {};
}
