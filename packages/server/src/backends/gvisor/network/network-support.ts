import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { poolConflict, POOL } from "./addresses.ts";
import { firewallText, type Firewall } from "./firewall.ts";
import { LINK_PREFIX } from "./names.ts";
import { runTool } from "./run-tool.ts";

export interface NetworkTools {
  readonly ip: string;
  readonly nft: string;
}

/** Whether sandboxes here can have network access; if not, what is missing and what to do. */
export type NetworkSupport =
  | { readonly ok: true; readonly tools: NetworkTools }
  | { readonly ok: false; readonly reason: string; readonly remedy: string };

/** Older versions mistake a namespace of their own for the host's on newer kernels, and refuse to start in it. */
const OLDEST_ENGINE_DATE = "20250101";

/** With everything that the kernel must support. */
const SAMPLE: Firewall = {
  table: "sandboxer-probe",
  ports: { connections: 1, names: 2 },
  allowed: ["10.0.0.0/8"],
  links: [
    { link: `${LINK_PREFIX}0`, policy: "open" },
    { link: `${LINK_PREFIX}1`, policy: { allow: ["192.0.2.0/24:53"], deny: ["192.0.2.1"] } },
  ],
};

export async function probeNetwork(engineVersion: string, searchPath: string): Promise<NetworkSupport> {
  const date = /(?:^|[^0-9])(20[0-9]{6})/.exec(engineVersion)?.[1];
  if (date === undefined || date < OLDEST_ENGINE_DATE) {
    const remedy = "Run `sandboxer setup --newest` and restart the server.";
    return { ok: false, reason: `networking needs runsc 2025 or newer, and this server has ${engineVersion}`, remedy };
  }
  const { ip, nft } = findNetworkTools(searchPath);
  if (ip === undefined) {
    return { ok: false, reason: "ip (iproute2) is not installed", remedy: "apt-get install iproute2" };
  }
  if (nft === undefined)
    return { ok: false, reason: "nft (nftables) is not installed", remedy: "apt-get install nftables" };
  const conflict = poolConflict();
  if (conflict !== undefined) {
    const reason = `the host's interface ${conflict} has an address in ${POOL}, which is reserved for sandboxes`;
    return { ok: false, reason, remedy: "Use a machine without that network." };
  }
  try {
    await runTool(nft, "--check", firewallText(SAMPLE));
  } catch (error) {
    const reason = `the kernel rejects the firewall rules: ${(error as Error).message}`;
    return { ok: false, reason, remedy: "Run as root, with CAP_NET_ADMIN and the kernel's nf_tables." };
  }
  return { ok: true, tools: { ip, nft } };
}

/** Undefined: not installed. */
export function findNetworkTools(searchPath: string): { [Tool in keyof NetworkTools]: string | undefined } {
  return { ip: find("ip", searchPath), nft: find("nft", searchPath) };
}

export function notSupported({ reason, remedy }: { reason: string; remedy: string }): SandboxerError {
  return new SandboxerError("not_supported", `Sandboxes here cannot have a network of their own: ${reason}.`, {
    hint: `${remedy} Or start the server with --network-mode proxy.`,
  });
}

function find(name: string, searchPath: string): string | undefined {
  const places = searchPath.split(delimiter).filter((folder) => folder !== "");
  return places
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
