import type { Logger } from "pino";
import { keyFilePath } from "../gateway/access/key-file.ts";
import { openAccess, type Access, type Fleet } from "../gateway/access/open-access.ts";
import { systemClock } from "../support/clock.ts";
import { isLoopback, type ServerConfig } from "./config.ts";

/** Opens access control, and logs warnings about it. */
export function openServerAccess(config: ServerConfig, log: Logger, fleet: () => Fleet | undefined): Access {
  const { host, dataDirectory } = config;
  const loopbackOnly = isLoopback(host);
  const keyFile = keyFilePath(dataDirectory);
  const access = openAccess({ ...config, keyFile, loopbackOnly, fleet, clock: systemClock, log });
  if (access.gate.authenticator.open) {
    log.warn(
      `There are no keys: every program on this machine can use the server, which listens only on ${host}. ` +
        "Create a key with `sandboxer keys create`.",
    );
  } else if (access.keys.usableCount === 0) {
    log.warn(
      "Every key is revoked or expired, so nobody can use the server. Create a key with `sandboxer keys create`.",
    );
  }
  return access;
}
