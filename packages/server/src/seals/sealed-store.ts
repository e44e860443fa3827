import { SandboxerError } from "@sandboxer/protocol";
import { jsonOf } from "../support/json.ts";
import { recordNotSealed } from "../support/record-damage.ts";
import type { ObjectStore } from "../store/store.ts";

/** Signs records, so that a server can distinguish records of other servers from forged ones. */
export interface Seals {
  /** The record with a seal for this place in the store, replacing any that it has. */
  sealed(key: string, record: object): object;
  /** Whether it has a seal for this place, made with a key that this server has. */
  holds(key: string, record: object): boolean;
}

export interface SealOptions {
  /** Absent: this server has no key, and must not overwrite sealed records. */
  readonly seals: Seals | undefined;
  /** Whether records without a valid seal are refused. */
  readonly required: boolean;
}

/** Heads, snapshot records and names, server records, sandbox keys, data keys: everything that decides something. */
const RECORD =
  /^([0-9a-f-]{36}\/metadata|snapshots\/[0-9a-f-]{36}\/record|(snapshot-names|instances|acquire-keys|data-keys)\/[^/]+)\.json$/;

export function isRecord(key: string): boolean {
  return RECORD.test(key);
}

/** A store whose records are sealed when written, and checked when read. */
export function withSeals(store: ObjectStore, { seals, required }: SealOptions): ObjectStore {
  const overrides: Pick<ObjectStore, "readCell" | "swapCell"> = {
    readCell: async (key, options) => {
      const cell = await store.readCell(key, options);
      if (cell === undefined || !required || !isRecord(key)) return cell;
      const record = jsonOf(cell.body);
      // The reader detects content that is not a record.
      if (!isObject(record) || seals?.holds(key, record) === true) return cell;
      throw recordNotSealed(cell.file ?? key);
    },
    swapCell: async (key, expected, body) => {
      const record = isRecord(key) && mayBeSealed(body, seals) ? jsonOf(body) : undefined;
      if (!isObject(record)) return await store.swapCell(key, expected, body);
      if (seals === undefined) throw cannotSeal(key);
      return await store.swapCell(key, expected, encodeAs(body, seals.sealed(key, record)));
    },
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "readCell" || name === "swapCell") return overrides[name];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A writer keeps unknown fields, including a seal: without the key it would be wrong. */
function mayBeSealed(body: Uint8Array, seals: Seals | undefined): boolean {
  return seals !== undefined || Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes('"seal"');
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Heads are indented for people. */
function encodeAs(body: Uint8Array, record: object): Uint8Array {
  const isLaidOut = body[1] === 0x0a;
  return Buffer.from(`${JSON.stringify(record, undefined, isLaidOut ? 2 : undefined)}\n`);
}

function cannotSeal(key: string): SandboxerError {
  return new SandboxerError("key_unavailable", `The record ${key} is sealed, but this server has no encryption key.`, {
    hint: "Start the server with the encryption key of the store's other servers (--encryption-key or --encryption-old-keys).",
    details: { object: key },
  });
}
