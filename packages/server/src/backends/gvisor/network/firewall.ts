import { parseEntry, PRIVATE_IPV4, type IpRange, type NetworkPolicy } from "@sandboxer/protocol";
import { NAMESERVER, POOL } from "./addresses.ts";
import { LINK_PREFIX } from "./names.ts";

export interface Firewall {
  /** The name of the server's table. */
  readonly table: string;
  readonly ports: DiversionPorts;
  /** Private networks that sandboxes may reach, as CIDRs. */
  readonly allowed: readonly string[];
  readonly links: readonly FirewallLink[];
}

/** Where this server takes what the firewall does not let pass by itself. */
export interface DiversionPorts {
  /** For all connections. */
  readonly connections: number;
  /** For questions about names. */
  readonly names: number;
}

export interface FirewallLink {
  readonly link: string;
  readonly policy: NetworkPolicy;
}

/**
 * One nftables table for each server, about the links of its own sandboxes; a link is in it before it is up. TCP goes
 * to this server, which judges each connection, except to the internet under the policy `open`. Other packets pass by
 * address. An accept in it decides for this table only; drops of the host's other tables still apply.
 */
export function firewallText({ table, ports, allowed, links }: Firewall): string {
  const sandboxes = `"${LINK_PREFIX}*"`;
  const quoted = (some: readonly FirewallLink[]): string => elements(some.map(({ link }) => `"${link}"`));
  // The first two lines make the result the same whether a table existed or not.
  return `
add table inet ${table}
delete table inet ${table}
table inet ${table} {
  set links { type ifname; ${quoted(links)} }
  set direct { type ifname; ${quoted(links.filter(({ policy }) => policy === "open"))} }
  set private { type ipv4_addr; flags interval; ${elements(PRIVATE_IPV4)} }
${links.map((each) => chainOf(each, allowed)).join("\n")}
  map policies { type ifname : verdict; ${elements(links.map(({ link }) => `"${link}" : jump ${link}`))} }
  chain diverted {
    type nat hook prerouting priority -100; policy accept;
    iifname != @links accept
    ip daddr ${NAMESERVER} udp dport 53 redirect to :${ports.names}
    iifname @direct ip daddr != @private fib daddr type != local accept
    meta l4proto tcp redirect to :${ports.connections}
  }
  chain to_host {
    type filter hook input priority -10; policy accept;
    iifname @links ct status dnat accept
    iifname @links drop
    tcp dport ${ports.connections} drop
    udp dport ${ports.names} drop
  }
  chain from_host {
    type filter hook output priority -10; policy accept;
    oifname @links ct state new drop
  }
  chain through_host {
    type filter hook forward priority -10; policy accept;
    iifname @links oifname ${sandboxes} drop
    iifname @links jump outgoing
    oifname @links ct state != { established, related } drop
  }
  chain outgoing {
    meta nfproto != ipv4 drop
    ip saddr != ${POOL} drop
    iifname vmap @policies
    meta l4proto tcp reject with tcp reset
    reject with icmpx type admin-prohibited
  }
  chain masked {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${POOL} oifname != ${sandboxes} masquerade
  }
}
`;
}

/** Traffic that bypasses this server. Lists let datagrams, which have no greeting, pass only to addresses they name. */
function chainOf({ link, policy }: FirewallLink, allowed: readonly string[]): string {
  const reachable = [...allowed.filter(isFour).map((range) => `ip daddr ${range} accept`), "ip daddr @private return"];
  if (policy === "none") return chain(link, []);
  if (policy === "open") return chain(link, [...reachable, "accept"]);
  const denied = ranges(policy.deny).map(({ range, port }) => `ip daddr ${range} ${datagrams(port)} return`);
  const named = ranges(policy.allow).map(({ range, port }) => `ip daddr ${range} ${datagrams(port)} accept`);
  // Private networks that the operator allows need a permission of the policy too.
  const hidden = allowed.filter(isFour).map((range) => `ip daddr ${range} jump ${link}-allowed`);
  return [
    chain(`${link}-allowed`, named),
    chain(link, [...denied, ...hidden, "ip daddr @private return", ...named]),
  ].join("\n");
}

function chain(name: string, rules: readonly string[]): string {
  return `  chain ${name} {\n${rules.map((rule) => `    ${rule}\n`).join("")}  }`;
}

function datagrams(port: number | undefined): string {
  return port === undefined ? "meta l4proto { udp, icmp }" : `udp dport ${port}`;
}

function ranges(entries: readonly string[] = []): { range: string; port: number | undefined }[] {
  return entries.flatMap((text) => {
    const entry = parseEntry(text);
    if (entry === undefined || !("range" in entry.host) || entry.host.range.start.bits !== 32) return [];
    return [{ range: rangeText(entry.host.range), port: entry.port }];
  });
}

function rangeText({ start, prefix }: IpRange): string {
  const shift = BigInt(32 - prefix);
  const first = (start.value >> shift) << shift;
  return `${[24n, 16n, 8n, 0n].map((bits) => (first >> bits) & 255n).join(".")}/${prefix}`;
}

function isFour(range: string): boolean {
  return !range.includes(":");
}

function elements(values: readonly string[]): string {
  return values.length === 0 ? "" : `elements = { ${values.join(", ")} };`;
}
