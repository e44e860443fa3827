import { networkText, type NetworkPolicy } from "@sandboxer/protocol/network-text";
import { spell } from "./sandbox-actions.ts";
import { literal, onServer, type Spellings } from "./spellings.ts";

/** The network of a sandbox in other forms. */
export function refusedSpellings(id: string): Spellings {
  return onServer(
    ["network", "log", id],
    `console.log((await client.call("sandboxNetwork", { params: { id: ${literal(id)} } })).refused);`,
    { method: "GET", path: `/v1/sandboxes/${encodeURIComponent(id)}/network` },
  );
}

export function policySpellings(id: string, network: NetworkPolicy): Spellings {
  const body = { network };
  return spell(["network", "set", id, networkText(network)], [`await sandbox.update(${JSON.stringify(body)});`], id, {
    method: "PATCH",
    path: "",
    body,
  });
}
