import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { NetworkPolicy } from "@sandboxer/protocol";
import { z } from "zod";
import type { NetworkGuard } from "../../backend.ts";
import { Diversion } from "./diversion.ts";
import { firewallText } from "./firewall.ts";
import { NAMESPACE_FOLDER, namespaceName, networkName } from "./names.ts";
import type { NetworkTools } from "./network-support.ts";
import { runTool } from "./run-tool.ts";
import { removeNamespace, SandboxNetwork, type Links } from "./sandbox-network.ts";

/** In the run directory, written before the first change to the host's network; says how to undo it. */
const RECORD = "network.json";
const FORWARDING = "/proc/sys/net/ipv4/ip_forward";

const Tools = z.object({ ip: z.string(), nft: z.string() });

/** A sandbox with a way out. */
interface Connected {
  readonly link: string;
  policy: NetworkPolicy;
  /** Until there is one, connections and questions wait. */
  readonly guard: PromiseWithResolvers<NetworkGuard>;
}

export interface ServerNetworkOptions {
  readonly tools: NetworkTools;
  readonly runDirectory: { readonly path: string; readonly instanceId: string };
  /** This server's own, never one that came with an image. */
  readonly agentPath: string;
  /** Private networks that sandboxes may reach, as CIDRs. */
  readonly allowed: readonly string[];
}

/** Shared by the sandboxes of one server: the firewall. Nothing is changed before the first one needs it. */
export class ServerNetwork {
  readonly #options: ServerNetworkOptions;
  /** By the sandbox's address. */
  readonly #connected = new Map<string, Connected>();
  #recorded: Promise<void> | undefined;
  #diversion: Promise<Diversion> | undefined;
  #loading: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;
  #closed = false;

  constructor(options: ServerNetworkOptions) {
    this.#options = options;
  }

  /** `policy`: of one with a way out; absent, it has loopback only, and nothing on the host changes. */
  sandboxNetwork(containerId: string, policy: NetworkPolicy | undefined): SandboxNetwork {
    const { tools, runDirectory } = this.#options;
    const name = namespaceName(runDirectory.instanceId, containerId);
    const prepare = (): Promise<void> => this.#record();
    return new SandboxNetwork(name, tools.ip, prepare, policy === undefined ? undefined : this.#linksUnder(policy));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await (await this.#diversion?.catch(() => undefined))?.close();
  }

  #linksUnder(first: NetworkPolicy): Links {
    return {
      add: async ({ link, sandbox }) => {
        const guard = Promise.withResolvers<NetworkGuard>();
        guard.promise.catch(() => {});
        this.#connected.set(sandbox, { link, policy: first, guard });
        await this.#apply();
        // The policy comes before the forwarding that it restricts.
        if ((await readFile(FORWARDING, "utf8")).trim() === "0") await writeFile(FORWARDING, "1");
      },
      change: async ({ sandbox }, policy, guard) => {
        const connected = this.#connected.get(sandbox);
        if (connected === undefined) return;
        const before = connected.policy;
        connected.policy = policy;
        try {
          if (!isDeepStrictEqual(before, policy)) await this.#apply();
        } catch (error) {
          connected.policy = before;
          throw error;
        }
        connected.guard.resolve(guard);
      },
      remove: async ({ sandbox }) => {
        this.#connected.get(sandbox)?.guard.reject(new Error("the sandbox has ended"));
        this.#connected.delete(sandbox);
        // A table that names a link which has ended does no harm; the next change removes it.
        if (!this.#closed) await this.#apply().catch(() => {});
      },
    };
  }

  #record(): Promise<void> {
    const { tools, runDirectory } = this.#options;
    this.#recorded ??= writeFile(join(runDirectory.path, RECORD), JSON.stringify(tools));
    return this.#recorded;
  }

  /** The whole table each time, because a reload of the host's own firewall removes foreign ones. */
  #apply(): Promise<void> {
    // A load that waits for its turn includes this change.
    this.#waiting ??= this.#loading
      .catch(() => {})
      .then(() => {
        this.#waiting = undefined;
        this.#loading = this.#load();
        return this.#loading;
      });
    return this.#waiting;
  }

  async #load(): Promise<void> {
    const { tools, runDirectory, allowed } = this.#options;
    const { ports } = await this.#diverted();
    const table = networkName(runDirectory.instanceId);
    // The name shows whose work a running tool is.
    const file = join(runDirectory.path, `${table}.nft`);
    await writeFile(file, firewallText({ table, ports, allowed, links: [...this.#connected.values()] }));
    await runTool(tools.nft, "-f", file);
  }

  #diverted(): Promise<Diversion> {
    const { agentPath, runDirectory } = this.#options;
    const guardOf = (address: string): Promise<NetworkGuard> | undefined => this.#connected.get(address)?.guard.promise;
    this.#diversion ??= Diversion.open(agentPath, networkName(runDirectory.instanceId), guardOf).then(
      (diversion) => {
        void diversion.ended.then(() => this.#lost());
        return diversion;
      },
      (error: unknown) => {
        this.#diversion = undefined;
        throw error;
      },
    );
    return this.#diversion;
  }

  /** Someone has ended the helper: another one takes over. */
  #lost(): void {
    this.#diversion = undefined;
    if (!this.#closed && this.#connected.size > 0) void this.#apply().catch(() => {});
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
