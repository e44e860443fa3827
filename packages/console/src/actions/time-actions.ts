import { parseDurationMs, tryParseDurationMs } from "@sandboxer/protocol/duration";
import { literal, type Spellings } from "./spellings.ts";
import { spell } from "./sandbox-actions.ts";

/** Changes of a sandbox's times in other forms. */
export function ttlSpellings(id: string, duration: string): Spellings {
  return spell(["extend-ttl", id, "--duration", duration], [`await sandbox.extendTtl(${literal(duration)});`], id, {
    method: "PATCH",
    path: "/ttl",
    body: { duration },
  });
}

export function idleTimeoutSpellings(id: string, idleTimeout: string): Spellings {
  const seconds = secondsOf(idleTimeout);
  return spell(
    ["update", id, "--idle-timeout", idleTimeout],
    [`await sandbox.update({ idleTimeout: ${seconds} });`],
    id,
    {
      method: "PATCH",
      path: "",
      body: { idle_timeout: seconds },
    },
  );
}

/** Parses a duration such as `30m`; throws if it is invalid. */
export function secondsOf(duration: string): number {
  return parseDurationMs(duration) / 1000;
}

export function isDuration(text: string): boolean {
  return tryParseDurationMs(text) !== undefined;
}

export function reachabilitySpellings(id: string): Spellings {
  return spell(["reachability", id], ["console.log(await sandbox.reachability());"], id, {
    method: "GET",
    path: "/reachability",
  });
}
