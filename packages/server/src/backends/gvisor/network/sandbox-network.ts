import { randomInt } from "node:crypto";
import { writeFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError, type NetworkPolicy } from "@sandboxer/protocol";
import type { NetworkGuard } from "../../backend.ts";
import { addressesOf, SLOTS, type LinkAddresses } from "./addresses.ts";
import { NAMESPACE_FOLDER } from "./names.ts";
import { runTool, ToolError } from "./run-tool.ts";

const USUAL_BYTES = 1500;

/** The name inside is always the same: an image depends on it. */
const INSIDE = "eth0";
const CLAIM_ATTEMPTS = 64;

/** The host's ends of links, as the firewall knows them. */
export interface Links {
  /** Before it is up. */
  add(addresses: LinkAddresses): Promise<void>;
  /** The guard serves the connections that come through it. */
  change(addresses: LinkAddresses, policy: NetworkPolicy, guard: NetworkGuard): Promise<void>;
  /** After it was removed. */
  remove(addresses: LinkAddresses): Promise<void>;
}

/**
 * The namespace of one incarnation of a sandbox, with one end of a link in it. gVisor takes the address off that end
 * and uses it itself, so a namespace is used once: a restore gets a new one, with another address.
 */
export class SandboxNetwork {
  readonly name: string;
  readonly #ip: string;
  readonly #prepare: () => Promise<void>;
  readonly #links: Links | undefined;
  #addresses: LinkAddresses | undefined;

  /** `links`: absent, it has no link to the host. */
  constructor(name: string, ip: string, prepare: () => Promise<void>, links: Links | undefined) {
    this.name = name;
    this.#ip = ip;
    this.#prepare = prepare;
    this.#links = links;
  }

  /** Whether it has a link to the host. */
  get connected(): boolean {
    return this.#links !== undefined;
  }

  get path(): string {
    return join(NAMESPACE_FOLDER, this.name);
  }

  async create(): Promise<void> {
    await this.#prepare();
    // First, because the clean-up after a crash finds the rest by it.
    await runTool(this.#ip, "netns", "add", this.name);
    await this.#inside("link", "set", "lo", "up");
    if (this.#links === undefined) return;
    this.#addresses = await this.#claimLink(await hostLinkBytes());
    const { link, host, sandbox } = this.#addresses;
    await this.#links.add(this.#addresses);
    await runTool(this.#ip, "address", "add", `${host}/30`, "dev", link);
    // A sandbox that uses the address of another is ignored.
    await writeFile(`/proc/sys/net/ipv4/conf/${link}/rp_filter`, "1");
    await runTool(this.#ip, "link", "set", link, "addrgenmode", "none", "up");
    await this.#inside("address", "add", `${sandbox}/30`, "dev", INSIDE);
    await this.#inside("link", "set", INSIDE, "addrgenmode", "none", "up");
    await this.#inside("route", "add", "default", "via", host);
  }

  async setPolicy(policy: NetworkPolicy, guard: NetworkGuard): Promise<void> {
    if (this.#addresses !== undefined) await this.#links?.change(this.#addresses, policy, guard);
  }

  /** Also half-created and already removed ones. */
  async remove(): Promise<void> {
    await removeNamespace(this.#ip, this.name);
    const addresses = this.#addresses;
    this.#addresses = undefined;
    if (addresses !== undefined) await this.#links?.remove(addresses);
  }

  /** From a random position, so that an address is not reused soon: the outside may still be sending to it. */
  async #claimLink(linkBytes: number): Promise<LinkAddresses> {
    const start = randomInt(SLOTS);
    for (let attempt = 0; attempt < CLAIM_ATTEMPTS; attempt += 1) {
      const addresses = addressesOf((start + attempt * 257) % SLOTS);
      const mtu = ["mtu", String(linkBytes)];
      const peer = ["peer", "name", INSIDE, ...mtu, "netns", this.name];
      try {
        await runTool(this.#ip, "link", "add", addresses.link, ...mtu, "type", "veth", ...peer);
        return addresses;
      } catch (error) {
        if (!(error instanceof ToolError) || !error.stderr.includes("File exists")) throw error;
      }
    }
    throw new SandboxerError("limit_reached", "This machine has no addresses left for sandboxes with a network.");
  }

  #inside(...args: readonly string[]): Promise<void> {
    return runTool(this.#ip, "-n", this.name, ...args);
  }
}

/** The link is removed through its inner end: the host's name could belong to another sandbox by now. */
export async function removeNamespace(ip: string, name: string): Promise<void> {
  await runTool(ip, "-n", name, "link", "delete", INSIDE).catch(() => {});
  await runTool(ip, "netns", "delete", name).catch(() => {});
}

/** The MTU of the host's route to the outside; larger packets from a sandbox would be lost or fragmented. */
async function hostLinkBytes(): Promise<number> {
  const routes = await readFile("/proc/net/route", "utf8").catch(() => "");
  // Interface, destination, gateway, … in hexadecimal: the default route's destination is 0.
  const device = /^(\S+)\t00000000\t/m.exec(routes)?.[1];
  if (device === undefined) return USUAL_BYTES;
  const text = await readFile(`/sys/class/net/${device}/mtu`, "utf8").catch(() => "");
  return Math.min(Number(text.trim()) || USUAL_BYTES, USUAL_BYTES);
}
