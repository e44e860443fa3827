import { appendFileSync } from "node:fs";
import { openStore as openRealStore, type StoreOptions } from "../../packages/server/src/store/open-store.ts";
import type { ObjectStore, WriteOptions } from "../../packages/server/src/store/store.ts";
import type { RequestKind, TracedRequest } from "./trace.ts";

const KINDS: ReadonlyMap<PropertyKey, RequestKind> = new Map<PropertyKey, RequestKind>([
  ["readCell", "read"],
  ["swapCell", "conditional write"],
  ["deleteCell", "delete"],
  ["listCells", "list"],
  ["listMarks", "list"],
  ["stat", "look"],
  ["read", "read"],
  ["write", "write"],
  ["writeText", "write"],
  ["list", "list"],
  ["listFolders", "list"],
  ["delete", "delete"],
  ["deleteTree", "delete"],
  ["verify", "read"],
]);

/** Takes the place of the server's own `openStore`: each call to the store is a line in a file. */
export async function openStore(address: string, options?: StoreOptions): Promise<ObjectStore> {
  const file = process.env["BENCH_STORE_TRACE"] ?? "";
  return new Proxy(await openRealStore(address, options), {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...parameters: unknown[]) => {
        const isConditional = name === "write" && (parameters[2] as WriteOptions | undefined)?.ifAbsent === true;
        const kind = isConditional ? "conditional write" : KINDS.get(name);
        const request: TracedRequest | undefined = kind && { kind, key: String(parameters[0]) };
        if (request !== undefined) appendFileSync(file, `${JSON.stringify(request)}\n`);
        return Reflect.apply(value, target, parameters) as unknown;
      };
    },
  });
}
