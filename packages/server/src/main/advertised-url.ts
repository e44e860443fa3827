import { isIPv4, isIPv6 } from "node:net";
import type { ServerConfig } from "./config.ts";

/**
 * The URL at which other servers of the store reach this one, if they can. A wildcard address is useless to another
 * machine: a caller would reach itself.
 */
export function advertisedUrl(
  config: Pick<ServerConfig, "host" | "advertiseUrl">,
  boundUrl: string,
): string | undefined {
  return config.advertiseUrl ?? (isWildcard(config.host) ? undefined : boundUrl);
}

function isWildcard(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return (isIPv4(bare) && /^[0.]+$/.test(bare)) || (isIPv6(bare) && /^[0:.]+$/.test(bare.replace(/^::ffff:/i, "")));
}
