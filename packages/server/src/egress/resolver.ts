import { Resolver } from "node:dns/promises";

/** All addresses of a name. Rejects if it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

const TIMEOUT_MS = 5_000;
const TRIES = 2;

/**
 * Asks nameservers itself: the system's own function would keep one of Node's few threads waiting for each name, and
 * sandboxes choose the names. `nameservers`: absent or empty, the host's.
 */
export function nameserverResolver(nameservers: readonly string[] = []): Resolve {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  if (nameservers.length > 0) resolver.setServers(nameservers);
  return async (name) => {
    // RFC 6761: these names are this host, whatever a nameserver answers.
    if (name === "localhost" || name.endsWith(".localhost")) return ["127.0.0.1"];
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    // IPv4 first: many networks have IPv6 addresses and no way to them.
    const found = [four, six].flatMap((each) => (each.status === "fulfilled" ? each.value : []));
    if (found.length > 0) return found;
    throw four.status === "rejected" ? four.reason : new Error(`${name} has no addresses`);
  };
}
