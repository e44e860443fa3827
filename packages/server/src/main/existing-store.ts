import { existsSync } from "node:fs";
import { SandboxerError } from "@sandboxer/protocol";
import { openStore } from "../store/open-store.ts";
import type { ObjectStore } from "../store/store.ts";

/** To open a directory is to make it, which is not what a mistyped path is for. */
export async function openExistingStore(address: string): Promise<ObjectStore> {
  if (!/^[a-z0-9]+:\/\//i.test(address) && !existsSync(address)) {
    throw new SandboxerError("store_unavailable", `There is no store at ${address}.`, {
      hint: "Give the address that the servers use, with --store.",
    });
  }
  return await openStore(address);
}
