import { isIPv6 } from "node:net";

/**
 * What counts as one address for limits: an IPv4 address, or the /64 of an IPv6 address, which is what one customer of
 * a provider has at least.
 */
export function remoteNetwork(address: string | undefined): string {
  if (address === undefined) return "unknown";
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = "", tail] = (address.split("%")[0] ?? "").split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? 0 : tail.split(":").length;
  const zeros = tail === undefined ? 0 : 8 - groups.length - after;
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...(tail ?? "").split(":")];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(":")}::/64`;
}
