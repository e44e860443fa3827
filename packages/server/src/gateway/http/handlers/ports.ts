import { parseDurationMs, SandboxerError } from "@sandboxer/protocol";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { PreviewAddresses } from "../../preview/preview-address.ts";
import { SIGNATURE_PARAMETER, type SignedLinks } from "../../preview/signed-links.ts";
import type { Handlers } from "../handler.ts";

/** The addresses of ports, and links that open them. */
export interface PreviewLinks {
  readonly addresses: PreviewAddresses;
  readonly links: SignedLinks;
}

const LONGEST_LINK_MS = 30 * 86_400_000;

export function portsHandlers(manager: SandboxManager, { addresses, links }: PreviewLinks) {
  return {
    listPorts: async ({ params }) => {
      const ports = await manager.ports.list(await manager.running(params.id));
      const items = ports.map(({ port, address, process = null, isPublic }) => ({
        port,
        address,
        process,
        public: isPublic,
        url: addresses.urlOf({ sandboxId: params.id, port }),
      }));
      return { items };
    },
    createPortLink: async ({ params, body: { port, expires } }) => {
      const target = { sandboxId: params.id, port };
      const access = await manager.ports.access(params.id);
      const url = addresses.urlOf(target);
      if (access.isPublic(port)) return { url, expires_at: null };
      const lastsMs = parseDurationMs(expires);
      if (lastsMs < 1000 || lastsMs > LONGEST_LINK_MS)
        throw new SandboxerError("bad_request", "expires must be from 1s to 30d.");
      const { text, endsAt } = links.sign(target, Math.ceil((Date.now() + lastsMs) / 1000), access.linkRound(port));
      return { url: `${url}?${SIGNATURE_PARAMETER}=${text}`, expires_at: new Date(endsAt * 1000).toISOString() };
    },
    withdrawPortLinks: async ({ params, query, epoch }) => {
      await manager.amend(params.id, epoch, { withdraw_links: query.port });
    },
  } satisfies Partial<Handlers>;
}
