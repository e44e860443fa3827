import { isIPv4, isIPv6 } from "node:net";
import type { ServerConfig } from "./config.ts";

/**
 * Where the other servers of the store reach this one, if they can. An address that stands for all addresses of a machine
 * is none of another machine's: whoever called it would reach itself.
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
