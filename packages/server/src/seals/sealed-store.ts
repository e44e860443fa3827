import { SandboxerError } from "@sandboxer/protocol";
import { jsonOf } from "../support/json.ts";
import { recordNotSealed } from "../support/record-damage.ts";
import type { ObjectStore } from "../store/store.ts";

/** Signs records, so that a server can tell what its fellows wrote from what somebody else put into the store. */
export interface Seals {
  /** The record with a seal for this place in the store, instead of any that it has. */
  sealed(key: string, record: object): object;
  /** Whether it has a seal that was made for this place, with a key that this server has. */
  holds(key: string, record: object): boolean;
}

export interface SealOptions {
  /** Absent: this server has no key for it, and must not write what others have sealed. */
  readonly seals: Seals | undefined;
  /** Whether what has no good seal is refused. */
  readonly required: boolean;
}

/** Heads, records and names of snapshots, servers, keys of sandboxes, data keys: what decides something. */
const RECORD =
  /^([0-9a-f-]{36}\/metadata|snapshots\/[0-9a-f-]{36}\/record|(snapshot-names|instances|acquire-keys|data-keys)\/[^/]+)\.json$/;

export function isRecord(key: string): boolean {
  return RECORD.test(key);
}

/** A store whose records are sealed as they are written, and held against their seals as they are read. */
export function withSeals(store: ObjectStore, { seals, required }: SealOptions): ObjectStore {
  const overrides: Pick<ObjectStore, "readCell" | "swapCell"> = {
    readCell: async (key, options) => {
      const cell = await store.readCell(key, options);
      if (cell === undefined || !required || !isRecord(key)) return cell;
      const record = jsonOf(cell.body);
      // What is no record is found out by whoever reads it as one.
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

/** A writer keeps the fields that it does not know, a seal among them: without the key it would be a wrong one. */
function mayBeSealed(body: Uint8Array, seals: Seals | undefined): boolean {
  return seals !== undefined || Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes('"seal"');
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Heads are laid out for people. */
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
