import { contains, parseRange, type IpAddress, type IpRange } from "./address.ts";

/**
 * IPv4 networks that are not the outside: this host, private networks, carriers' networks, link-local (cloud metadata),
 * Azure's own services (168.63.129.16), protocol assignments, benchmark networks, multicast, reserved.
 */
export const PRIVATE_IPV4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/4",
  "240.0.0.0/4",
] as const;

/**
 * The same for IPv6: this host, local NAT64, discarded, Teredo and 6to4 (which lead to IPv4 addresses), private,
 * link-local and site-local networks, multicast.
 */
export const PRIVATE_IPV6 = [
  "::/128",
  "::1/128",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/32",
  "2002::/16",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8",
] as const;

let ranges: readonly IpRange[] | undefined;

/** Whether sandboxes reach this address only if an operator allows it. */
export function isPrivateAddress(address: IpAddress): boolean {
  ranges ??= [...PRIVATE_IPV4, ...PRIVATE_IPV6].flatMap((text) => parseRange(text) ?? []);
  return ranges.some((range) => contains(range, address));
}
