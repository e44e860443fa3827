import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { egressPolicy } from "./egress-policy.ts";
import { NAMESPACE_FOLDER, namespaceName, networkName } from "./names.ts";
import { hostNameservers } from "./nameservers.ts";
import type { NetworkTools } from "./network-support.ts";
import { runTool } from "./run-tool.ts";
import { removeNamespace, SandboxNetwork } from "./sandbox-network.ts";

/** In the run directory, written before the first change to the host's network; says how to undo it. */
const RECORD = "network.json";
const FORWARDING = "/proc/sys/net/ipv4/ip_forward";

const Tools = z.object({ ip: z.string(), nft: z.string() });

/** Shared by the sandboxes of one server: the firewall's table. Nothing is changed before the first one needs it. */
export class ServerNetwork {
  readonly #tools: NetworkTools;
  readonly #runDirectory: { readonly path: string; readonly instanceId: string };
  #recorded: Promise<void> | undefined;

  constructor(tools: NetworkTools, runDirectory: { readonly path: string; readonly instanceId: string }) {
    this.#tools = tools;
    this.#runDirectory = runDirectory;
  }

  /** `connected`: with a way out; otherwise it has loopback only, and nothing on the host changes. */
  sandboxNetwork(containerId: string, connected: boolean): SandboxNetwork {
    const name = namespaceName(this.#runDirectory.instanceId, containerId);
    return new SandboxNetwork(name, this.#tools.ip, connected, () => this.#prepare(connected));
  }

  /** For each sandbox again, because a reload of the host's own firewall removes foreign tables. */
  async #prepare(connected: boolean): Promise<void> {
    this.#recorded ??= writeFile(join(this.#runDirectory.path, RECORD), JSON.stringify(this.#tools));
    await this.#recorded;
    if (!connected) return;
    // The policy comes before the forwarding that it restricts.
    const policy = egressPolicy(networkName(this.#runDirectory.instanceId), await hostNameservers());
    await runTool(this.#tools.nft, policy);
    if ((await readFile(FORWARDING, "utf8")).trim() === "0") await writeFile(FORWARDING, "1");
  }
}

/** Removes a server's network, once nothing of it runs. Others may need forwarding, so it stays. */
export async function removeServerNetwork(path: string, instanceId: string): Promise<void> {
  const record = await readFile(join(path, RECORD), "utf8").catch(() => undefined);
  if (record === undefined) return;
  const { ip, nft } = readTools(record);
  const name = networkName(instanceId);
  const namespaces = (await readdir(NAMESPACE_FOLDER).catch(() => [])).filter((each) => each.startsWith(`${name}-`));
  for (const namespace of namespaces) await removeNamespace(ip, namespace);
  await runTool(nft, "delete", "table", "inet", name).catch(() => {});
}

/** A record that was truncated by a crash was written before anything else was done. */
function readTools(record: string): NetworkTools {
  try {
    return Tools.parse(JSON.parse(record));
  } catch {
    return { ip: "ip", nft: "nft" };
  }
}
