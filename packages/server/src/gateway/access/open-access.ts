import type { Logger } from "pino";
import type { SharedRecords } from "./shared-records.ts";
import type { Clock } from "../../support/clock.ts";
import { AccessGate } from "./access-gate.ts";
import { AuditLog } from "./audit-log.ts";
import { Authenticator } from "./authenticator.ts";
import type { PeerSecret } from "./peer-secret.ts";
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
  /** The facts about the other servers of the store; absent: there are none, or the store is not open yet. */
  readonly fleet?: (() => Fleet | undefined) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The parts of access control that the servers of a store share. */
export interface Fleet {
  readonly peerSecret: PeerSecret;
  /** Undefined without a configured store. */
  readonly records: SharedRecords | undefined;
  /** How many live servers share the store, this one included. */
  readonly servers: () => number;
}

export interface Access {
  readonly gate: AccessGate;
  readonly audit: AuditLog;
  readonly keys: KeyRing;
}

/** Assembles the parts of access control. Throws if the key file cannot be read. */
export function openAccess(options: AccessOptions): Access {
  const { apiKeys, keyFile, loopbackOnly, keyHeader, rateLimit, rateBurst = 2 * rateLimit, clock, log } = options;
  const { trustedProxies = [], fleet = () => undefined } = options;
  if (keyFile !== undefined) readKeyFile(keyFile);
  const onProblem = (error: Error): void => log.error(`${error.message} Until then, none of its keys is accepted.`);
  const keys = new KeyRing({ environmentKeys: apiKeys, path: keyFile, clock, onProblem });
  const secret = (): PeerSecret | undefined => fleet()?.peerSecret;
  const sessions = new Sessions({ clock, secret, records: () => fleet()?.records });
  const authenticator = new Authenticator({ keys, sessions, loopbackOnly, keyHeader });
  const audit = new AuditLog({ log, file: options.auditFile, clock });
  const gate = new AccessGate({
    authenticator,
    audit,
    rateLimit,
    rateBurst,
    trustedProxies,
    clock,
    servers: () => fleet()?.servers() ?? 1,
    isRelayed: (message) => secret()?.isRelayed(message) === true,
  });
  return { gate, audit, keys };
}
