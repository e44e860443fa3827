import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { Handlers } from "../handler.ts";

type IntegrityHandlers = Pick<
  Handlers,
  "verifySnapshot" | "verifySandbox" | "scrubStore" | "scrubStatus" | "stopScrub"
>;

export function integrityHandlers({ integrity }: SandboxManager): IntegrityHandlers {
  return {
    verifySnapshot: ({ params, options }) => integrity.verifySnapshot(params.id, options),
    verifySandbox: ({ params, body, options }) => integrity.verifySandbox(params.id, body?.checkpoint, options),
    scrubStore: ({ body, options }) => integrity.scrub(body?.rate_mb, options),
    scrubStatus: () => integrity.status(),
    stopScrub: async () => integrity.stopScrub(),
  };
}
