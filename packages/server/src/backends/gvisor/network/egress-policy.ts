import { PRIVATE_IPV4 } from "@sandboxer/protocol";
import { POOL } from "./addresses.ts";
import { LINK_PREFIX } from "./names.ts";

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
    ip daddr { ${PRIVATE_IPV4.join(", ")} } reject with icmpx type admin-prohibited
  }
  chain masked {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${POOL} oifname != ${sandboxes} masquerade
  }
}`;
}
