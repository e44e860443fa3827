import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Handlers } from "../handler.ts";

export function snapshotsHandlers(_manager: SandboxManager): Partial<Handlers> {
  return {};
}
