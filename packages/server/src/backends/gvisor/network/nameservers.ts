import { readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import { errnoOf } from "../../agent/agent-error.ts";
import type { AgentFiles } from "../../agent/agent-files.ts";

const RESOLVER_FILE = "/etc/resolv.conf";
const ENOENT = 2;

/** The host's nameservers that a sandbox can reach: IPv4, and not on the host itself. */
export async function hostNameservers(): Promise<string[]> {
  return reachableNameservers(await readFile(RESOLVER_FILE, "utf8").catch(() => ""), ownAddresses());
}

export function reachableNameservers(resolverFile: string, ownAddresses: ReadonlySet<string>): string[] {
  const named = [...resolverFile.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address]) => address ?? "");
  const usable = named.filter(
    (address) => isIPv4(address) && !/^(127|0)\./.test(address) && !ownAddresses.has(address),
  );
  return [...new Set(usable)];
}

/** The nameservers of this machine replace the root filesystem's file (often a dangling link). */
export async function writeResolverFile(files: AgentFiles, nameservers: readonly string[]): Promise<void> {
  await files.remove(RESOLVER_FILE).catch((error: unknown) => {
    if (errnoOf(error) !== ENOENT) throw error;
  });
  const content = nameservers.map((address) => `nameserver ${address}\n`).join("");
  await files.makeFolder("/etc", { parents: true });
  await files.write(RESOLVER_FILE, Buffer.from(content), { mode: 0o644 });
}

function ownAddresses(): Set<string> {
  return new Set(Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []));
}
