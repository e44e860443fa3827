import { timingSafeEqual } from "node:crypto";
import { statSync } from "node:fs";
import { asSandboxerError, SCOPES, type SandboxerError } from "@sandboxer/protocol";
import type { Clock } from "../../support/clock.ts";
import { keyStatus, readKeyFile, type KeyRecord } from "./key-records.ts";
import { digest, parseKey } from "./key-text.ts";
import { scopesUpTo, type Principal } from "./principal.ts";

export interface KeyRingOptions {
  /** Keys from the environment, with all permissions. */
  readonly environmentKeys: readonly string[];
  /** The file of `sandboxer keys`; undefined: there is none. */
  readonly path: string | undefined;
  readonly clock: Pick<Clock, "wallMs" | "monotonicMs">;
  /** Called if the file cannot be read; until then none of its keys is accepted. */
  readonly onProblem: (error: SandboxerError) => void;
}

interface RingKey {
  readonly principal: Principal;
  /** The hash of the whole text for environment keys, of the secret for keys of the file. */
  readonly hash: Buffer;
  readonly record: KeyRecord | undefined;
}

/** Less than a second, so that a caller that asks every second always gets a fresh result. */
const LOOK_EVERY_MS = 900;

/** The keys that a running server accepts. Follows changes of the file within a second, without a restart. */
export class KeyRing {
  readonly #options: KeyRingOptions;
  readonly #fromEnvironment: readonly RingKey[];
  #keys: readonly RingKey[];
  #seen: string | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #required: boolean;

  constructor(options: KeyRingOptions) {
    this.#options = options;
    this.#fromEnvironment = options.environmentKeys.map(environmentKey);
    this.#keys = this.#fromEnvironment;
    this.#required = this.#keys.length > 0;
    this.#look();
  }

  /**
   * Whether there is or was a key. A server that had keys never becomes open again: not when the last one is revoked or
   * expires, and not when the file is removed or damaged.
   */
  get required(): boolean {
    this.#lookIfDue();
    return this.#required;
  }

  /** How many keys are currently accepted. */
  get usableCount(): number {
    this.#lookIfDue();
    return this.#keys.filter((key) => this.#isUsable(key)).length;
  }

  /** The time it takes reveals nothing about secrets. It may reveal whether a key id exists, which is not a secret. */
  find(text: string): Principal | undefined {
    this.#lookIfDue();
    const parts = parseKey(text);
    // A new key works at once.
    if (parts !== undefined && !this.#keys.some(({ record }) => record?.id === parts.id)) this.#look();
    const whole = digest(text);
    const secret = digest(parts?.secret ?? "");
    const found = this.#keys.filter(({ record, hash }) => {
      const right = timingSafeEqual(hash, record === undefined ? whole : secret);
      return right && (record === undefined || record.id === parts?.id);
    });
    return found.find((key) => this.#isUsable(key))?.principal;
  }

  /** Whether a caller's key is still accepted. */
  isCurrent(principal: Principal): boolean {
    this.#lookIfDue();
    return this.#keys.some((key) => key.principal.id === principal.id && this.#isUsable(key));
  }

  #isUsable({ record }: RingKey): boolean {
    return record === undefined || keyStatus(record, this.#options.clock.wallMs()) === "active";
  }

  #lookIfDue(): void {
    if (this.#options.clock.monotonicMs() - this.#lookedAtMs >= LOOK_EVERY_MS) this.#look();
  }

  #look(): void {
    const { path, clock, onProblem } = this.#options;
    if (path === undefined) return;
    this.#lookedAtMs = clock.monotonicMs();
    try {
      const seen = fingerprint(path);
      if (seen === this.#seen) return;
      this.#seen = seen;
      this.#keys = [...this.#fromEnvironment, ...readKeyFile(path).keys.map(storedKey)];
      if (this.#keys.length > 0) this.#required = true;
    } catch (thrown) {
      this.#keys = this.#fromEnvironment;
      this.#required = true;
      onProblem(asSandboxerError(thrown));
    }
  }
}

/** Changes with the file: a replaced one has another inode. */
function fingerprint(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? "" : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`;
}

function environmentKey(text: string, index: number): RingKey {
  const principal: Principal = {
    kind: "key",
    id: `environment:${index + 1}`,
    name: `key ${index + 1} of the environment`,
    scopes: SCOPES,
  };
  return { principal, hash: digest(text), record: undefined };
}

function storedKey(record: KeyRecord): RingKey {
  const { id, name, scope, sha256, encryption_key: encryptionKey } = record;
  const principal: Principal = { kind: "key", id: `key:${id}`, name, scopes: scopesUpTo(scope), encryptionKey };
  return { principal, hash: Buffer.from(sha256, "hex"), record };
}
