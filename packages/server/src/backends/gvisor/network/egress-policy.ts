import { POOL } from "./addresses.ts";
import { LINK_PREFIX } from "./names.ts";

/**
 * Not the outside: this host, private networks, carriers' networks, link-local (cloud metadata), Azure's own services
 * (168.63.129.16), protocol assignments, benchmark networks, multicast, reserved.
 */
const BLOCKED = [
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
];

/**
 * One nftables table for each server. It names no sandbox: it applies to every link with a sandbox's prefix, so a
 * sandbox never has a link without a policy. An accept in it decides for this table only; drops of the host's other
 * tables still apply.
 */
export function egressPolicy(table: string, nameservers: readonly string[]): string {
  const sandboxes = `"${LINK_PREFIX}*"`;
  const names =
    nameservers.length === 0
      ? ""
      : `ip daddr { ${nameservers.join(", ")} } meta l4proto { tcp, udp } th dport 53 accept`;
  // The first two lines make the result the same whether a table existed or not.
  return `
add table inet ${table}
delete table inet ${table}
table inet ${table} {
  chain to_host {
    type filter hook input priority -10; policy accept;
    iifname ${sandboxes} drop
  }
  chain from_host {
    type filter hook output priority -10; policy accept;
    oifname ${sandboxes} ct state new drop
  }
  chain through_host {
    type filter hook forward priority -10; policy accept;
    iifname ${sandboxes} oifname ${sandboxes} drop
    iifname ${sandboxes} jump outgoing
    oifname ${sandboxes} ct state != { established, related } drop
  }
  chain outgoing {
    meta nfproto != ipv4 drop
    ip saddr != ${POOL} drop
    ${names}
    ip daddr { ${BLOCKED.join(", ")} } reject with icmpx type admin-prohibited
  }
  chain masked {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${POOL} oifname != ${sandboxes} masquerade
  }
}`;
}
