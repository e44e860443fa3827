import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { egressPolicy } from "./egress-policy.ts";
import { hostLinkBytes } from "./host-link.ts";
import { NAMESPACE_FOLDER, namespaceName, networkName } from "./names.ts";
import { hostNameservers } from "./nameservers.ts";
import type { NetworkTools } from "./network-support.ts";
import { runTool } from "./run-tool.ts";
import { removeNamespace, SandboxNetwork } from "./sandbox-network.ts";

/** In the run directory, from before the first change to the host's network; says with what it is undone. */
const RECORD = "network.json";
const FORWARDING = "/proc/sys/net/ipv4/ip_forward";

const Tools = z.object({ ip: z.string(), nft: z.string() });

interface HostFacts {
  readonly linkBytes: number;
  readonly nameservers: readonly string[];
}

/** What the sandboxes of one server share: the firewall's table. Nothing is changed before the first one asks. */
export class ServerNetwork {
  readonly #tools: NetworkTools;
  readonly #runDirectory: { readonly path: string; readonly instanceId: string };
  #prepared: Promise<HostFacts> | undefined;

  constructor(tools: NetworkTools, runDirectory: { readonly path: string; readonly instanceId: string }) {
    this.#tools = tools;
    this.#runDirectory = runDirectory;
  }

  sandboxNetwork(containerId: string): SandboxNetwork {
    const name = namespaceName(this.#runDirectory.instanceId, containerId);
    return new SandboxNetwork(name, this.#tools.ip, () => this.#prepare());
  }

  async nameservers(): Promise<readonly string[]> {
    return (await this.#prepare()).nameservers;
  }

  /** One that failed is tried again by the next sandbox. */
  #prepare(): Promise<HostFacts> {
    this.#prepared ??= this.#prepareOnce().catch((error: unknown) => {
      this.#prepared = undefined;
      throw error;
    });
    return this.#prepared;
  }

  async #prepareOnce(): Promise<HostFacts> {
    const { path, instanceId } = this.#runDirectory;
    const [nameservers, linkBytes] = await Promise.all([hostNameservers(), hostLinkBytes()]);
    await writeFile(join(path, RECORD), JSON.stringify(this.#tools));
    // The policy comes before the forwarding that it restricts.
    await runTool(this.#tools.nft, egressPolicy(networkName(instanceId), nameservers));
    if ((await readFile(FORWARDING, "utf8")).trim() === "0") await writeFile(FORWARDING, "1");
    return { nameservers, linkBytes };
  }
}

/** Removes what a server has made, once nothing of it runs. Others may need the forwarding, so it stays. */
export async function removeServerNetwork(path: string, instanceId: string): Promise<void> {
  const record = await readFile(join(path, RECORD), "utf8").catch(() => undefined);
  if (record === undefined) return;
  const { ip, nft } = readTools(record);
  const name = networkName(instanceId);
  const namespaces = (await readdir(NAMESPACE_FOLDER).catch(() => [])).filter((each) => each.startsWith(`${name}-`));
  for (const namespace of namespaces) await removeNamespace(ip, namespace);
  await runTool(nft, "delete", "table", "inet", name).catch(() => {});
}

/** A record that was cut short by a crash was written before anything else was done. */
function readTools(record: string): NetworkTools {
  try {
    return Tools.parse(JSON.parse(record));
  } catch {
    return { ip: "ip", nft: "nft" };
  }
}
