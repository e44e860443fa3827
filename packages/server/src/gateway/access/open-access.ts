import type { Logger } from "pino";
import type { Clock } from "../../support/clock.ts";
import { AccessGate } from "./access-gate.ts";
import { AuditLog } from "./audit-log.ts";
import { Authenticator } from "./authenticator.ts";
import { readKeyFile } from "./key-records.ts";
import { KeyRing } from "./key-ring.ts";
import { Sessions } from "./sessions.ts";

export interface AccessOptions {
  readonly apiKeys: readonly string[];
  /** The file of `sandboxer keys`. */
  readonly keyFile: string | undefined;
  readonly loopbackOnly: boolean;
  readonly keyHeader?: string | undefined;
  readonly rateLimit: number;
  readonly rateBurst?: number | undefined;
  readonly trustedProxies?: readonly string[] | undefined;
  readonly auditFile?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Access {
  readonly gate: AccessGate;
  readonly audit: AuditLog;
  readonly keys: KeyRing;
}

/** Assembles the parts of access control. Throws if the key file cannot be read. */
export function openAccess(options: AccessOptions): Access {
  const { apiKeys, keyFile, loopbackOnly, keyHeader, rateLimit, rateBurst = 2 * rateLimit, clock, log } = options;
  const { trustedProxies = [] } = options;
  if (keyFile !== undefined) readKeyFile(keyFile);
  const onProblem = (error: Error): void => log.error(`${error.message} Until then, none of its keys is accepted.`);
  const keys = new KeyRing({ environmentKeys: apiKeys, path: keyFile, clock, onProblem });
  const authenticator = new Authenticator({ keys, sessions: new Sessions(clock), loopbackOnly, keyHeader });
  const audit = new AuditLog({ log, file: options.auditFile, clock });
  return { gate: new AccessGate({ authenticator, audit, rateLimit, rateBurst, trustedProxies, clock }), audit, keys };
}
