import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import net, { isIP, isIPv6 } from "node:net";
import type { AccessRequest } from "./shown-credential.ts";

/** Whether a text is an address, or a network such as 10.0.0.0/8. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, more] = text.split("/");
  const bits = isIP(address) === 6 ? 128 : 32;
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
  return isIP(address) !== 0 && isPrefix && more === undefined;
}

/** Addresses and networks. An IPv4 address in the form of IPv6 is the same address. */
export class Networks {
  readonly #networks: readonly string[];
  #list: net.BlockList | undefined;

  /** Takes texts that {@link isNetwork} accepts. */
  constructor(networks: readonly string[]) {
    this.#networks = networks;
  }

  has(address: string | undefined): boolean {
    const bare = (address ?? "").replace(/%.*$/, "");
    if (isIP(bare) === 0) return false;
    // Not earlier: Node's test for IPv6 takes milliseconds the first time.
    this.#list ??= blockListOf(this.#networks);
    return this.#list.check(bare, isIPv6(bare) ? "ipv6" : "ipv4");
  }
}

function blockListOf(networks: readonly string[]): net.BlockList {
  const list = new net.BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    list.addSubnet(address, Number(prefix ?? (family === "ipv6" ? 128 : 32)), family);
  }
  return list;
}

/** The proxies in front of this server whose reported addresses are trusted. */
export class TrustedProxies {
  readonly #networks: Networks;

  constructor(networks: readonly string[]) {
    this.#networks = new Networks(networks);
  }

  /** The facts of a request with the address that it comes from. */
  requestOf({ method, headers, socket }: IncomingMessage): AccessRequest {
    const peer = socket.remoteAddress;
    const isEncrypted = "encrypted" in socket && socket.encrypted === true;
    if (!this.#networks.has(peer))
      return { method, headers, remoteAddress: peer, proxyHeader: proxyHeaderOf(headers), isSecure: isEncrypted };
    // Each proxy appends the address that it was called from. Anyone may have written the entries before the last
    // address that is not our proxy.
    const client = forwardedFor(headers).findLast((address) => !this.#networks.has(address));
    const remoteAddress = client !== undefined && isIP(client) !== 0 ? client : peer;
    return { method, headers, remoteAddress, isSecure: isSecure(headers["x-forwarded-proto"], isEncrypted) };
  }
}

/** A proxy may be reached without TLS, and call this server with it. */
function isSecure(forwarded: string | string[] | undefined, isEncrypted: boolean): boolean {
  return forwarded === undefined ? isEncrypted : forwarded === "https";
}

/** The name of a header that only proxies send; undefined: there is none. */
function proxyHeaderOf(headers: IncomingHttpHeaders): string | undefined {
  return Object.keys(headers).find((name) => name === "forwarded" || name === "via" || name.startsWith("x-forwarded-"));
}

/** The addresses that proxies recorded, the last one by the peer. */
function forwardedFor(headers: IncomingHttpHeaders): string[] {
  const noted = [headers["x-forwarded-for"] ?? []].flat().join(",");
  if (noted !== "") return noted.split(",").map(withoutPort);
  const elements = (headers.forwarded ?? "").split(",");
  return elements.map((element) => withoutPort(/(?:^|;)\s*for=("[^"]*"|[^;\s]*)/i.exec(element)?.[1] ?? ""));
}

/** `192.0.2.1:80`, `"[2001:db8::1]:80"`, or an address alone. */
function withoutPort(text: string): string {
  const bare = text.trim().replaceAll('"', "");
  return /^\[(.*)\](?::\d+)?$/.exec(bare)?.[1] ?? /^([\d.]+):\d+$/.exec(bare)?.[1] ?? bare;
}
