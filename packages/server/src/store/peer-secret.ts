import { randomBytes } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { z } from "zod";
import { jsonOf } from "../support/json.ts";
import { recordDamaged } from "../support/record-damage.ts";
import { type ObjectStore, trySwap } from "./store.ts";

/** The cell with the shared secret of a store's servers. It is written once. */
const KEY = "peers/secret.json";

const cellSchema = z.looseObject({ format: z.literal(1), secret: z.string().regex(/^[0-9a-f]{64}$/) });

/** 32 bytes that only the servers of a store know. The first server that opens the store creates them. */
export async function openPeerSecret(store: ObjectStore): Promise<Buffer> {
  const present = await readSecret(store);
  if (present !== undefined) return present;
  const cell = { format: 1, secret: randomBytes(32).toString("hex") };
  await trySwap(store, KEY, undefined, Buffer.from(`${JSON.stringify(cell)}\n`));
  const written = await readSecret(store);
  if (written !== undefined) return written;
  throw new SandboxerError("store_unavailable", `The store ${store.address} does not retain ${KEY}.`);
}

async function readSecret(store: ObjectStore): Promise<Buffer | undefined> {
  const cell = await store.readCell(KEY);
  if (cell === undefined) return undefined;
  const parsed = cellSchema.safeParse(jsonOf(cell.body));
  if (parsed.success) return Buffer.from(parsed.data.secret, "hex");
  throw recordDamaged(KEY, z.prettifyError(parsed.error));
}
