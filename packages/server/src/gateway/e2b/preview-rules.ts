import { SandboxerError } from "@sandboxer/protocol";
import type { PreviewRules } from "../preview/preview-access.ts";
import type { E2bServices } from "./e2b-services.ts";
import { isOfE2b, RESERVED } from "./reserved-labels.ts";
import { TOKEN_HEADERS } from "./tokens.ts";

/**
 * Ports of sandboxes that E2B's clients created are open to everyone, as at E2B, unless they were created with
 * `allowPublicTraffic: false`: then the token opens them. Requests resume them only with `autoResume`.
 */
export function e2bPreviewRules(services: E2bServices): PreviewRules {
  return {
    isOpen: (headers, sandboxId, labels) => {
      if (!isOfE2b(labels)) return undefined;
      if (labels[RESERVED.traffic] !== "private") return true;
      return services.tokens.isToken("traffic", sandboxId, headers[TOKEN_HEADERS.traffic]);
    },
    wake: async (sandboxId, labels) => {
      if (!isOfE2b(labels)) return;
      if (labels[RESERVED.autoResume] === "on") return void (await services.running(sandboxId));
      throw new SandboxerError("backend_unavailable", "The sandbox is paused, and requests do not resume it.", {
        hint: "Connect to the sandbox first, or create it with autoResume.",
      });
    },
  };
}
