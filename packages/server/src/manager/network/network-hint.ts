import { networkText } from "@sandboxer/protocol";
import type { LiveSandbox } from "../live-sandbox.ts";

/** Messages of programs without a network: C libraries, Node, Go, curl, pip, git, apt. */
const NO_NETWORK =
  /name resolution|name or service not known|could not resolve|couldn't resolve|temporary failure resolving|failed to resolve|unable to resolve|unknown host|no such host|nodename nor servname|network is unreachable|failed to establish a new connection|\b(?:ENOTFOUND|EAI_AGAIN|EAI_NODATA|ENETUNREACH)\b/i;

/**
 * The hint for a failed program, if the network is the likely reason. `refusedBefore`: how many connections had been
 * refused when it started; `tail`: the end of its output.
 */
export function networkHint(
  { id, facts, network }: Pick<LiveSandbox, "id" | "facts" | "network">,
  refusedBefore: number,
  tail: string,
): string | null {
  const policy = facts.spec.network;
  const { refusals } = network ?? {};
  const [last] = refusals?.records ?? [];
  if (last !== undefined && refusals !== undefined && refusals.total > refusedBefore) {
    const policyText = networkText(policy);
    const what = `The network policy of this sandbox (${policyText}) refused ${last.name}:${last.port}: ${last.rule}.`;
    return `${what} See \`sandboxer network log ${id}\`; change it with \`sandboxer network set ${id} POLICY\`.`;
  }
  if (policy !== "none" || !NO_NETWORK.test(tail)) return null;
  return `This sandbox has no network. Give it one with \`sandboxer network set ${id} open\`, or create it with --network open.`;
}
