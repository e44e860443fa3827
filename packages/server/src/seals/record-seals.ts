import { createHmac } from "node:crypto";
import { z } from "zod";
import type { Seals } from "./sealed-store.ts";
import type { MasterKey } from "../checkpoints/keys/master-key.ts";
import { isSameSecret } from "../support/same-secret.ts";

/** The `seal` of a record: the master key that the MAC key was derived from, and the MAC. */
const sealSchema = z.object({ key: z.string(), mac: z.string() });

/**
 * Seals records with a key derived from the server's current encryption key, and accepts seals of its older keys. Only
 * the derived keys are kept in memory: they cannot decrypt anything.
 */
export class RecordSeals implements Seals {
  readonly #keys: ReadonlyMap<string, Uint8Array>;
  readonly #present: string;

  /** The current key comes first. */
  constructor(masters: readonly [MasterKey, ...MasterKey[]]) {
    this.#keys = new Map(masters.map((master) => [master.fingerprint, master.recordKey()]));
    this.#present = masters[0].fingerprint;
  }

  /** Undefined for a server without encryption keys. The current key comes first. */
  static with([present, ...older]: readonly MasterKey[]): RecordSeals | undefined {
    return present === undefined ? undefined : new RecordSeals([present, ...older]);
  }

  sealed(key: string, record: object): object {
    const { seal: _, ...rest } = record as { seal?: unknown };
    return { ...rest, seal: { key: this.#present, mac: this.#mac(this.#present, key, rest) } };
  }

  holds(key: string, record: object): boolean {
    const { seal, ...rest } = record as { seal?: unknown };
    const parsed = sealSchema.safeParse(seal).data;
    if (parsed === undefined || !this.#keys.has(parsed.key)) return false;
    return isSameSecret(parsed.mac, this.#mac(parsed.key, key, rest));
  }

  /** Whether it is sealed with the current key. */
  isPresent(key: string, record: object): boolean {
    const { seal } = record as { seal?: { key?: unknown } };
    return seal?.key === this.#present && this.holds(key, record);
  }

  #mac(fingerprint: string, key: string, record: object): string {
    const secret = this.#keys.get(fingerprint) ?? Buffer.of();
    return createHmac("sha256", secret)
      .update(`${key}\n${canonical(record)}`)
      .digest("base64");
  }
}

/** Canonical text: the same for the same value, whatever the order of its fields. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}
