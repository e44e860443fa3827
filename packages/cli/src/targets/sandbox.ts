import type { SandboxRecord } from "@sandboxer/protocol";
import type { Transport } from "@sandboxer/client/transport";
import { allItems } from "../api/pages.ts";
import { isUuid } from "./uuid.ts";
import { pick } from "./match.ts";

/** The id of the target sandbox. A full id is not looked up: the server knows whether it exists. */
export async function sandboxId(client: Transport, given: string): Promise<string> {
  return isUuid(given) ? given : (await findSandbox(client, given)).id;
}

export async function findSandbox(client: Transport, given: string): Promise<SandboxRecord> {
  if (isUuid(given)) return client.call("getSandbox", { params: { id: given } });
  return pick(given, await liveSandboxes(client), "sandbox", "sandbox_not_found");
}

/** Several at once: all of them are found before anything happens to one. */
export async function findSandboxes(client: Transport, given: readonly string[]): Promise<string[]> {
  const known = given.every(isUuid) ? [] : await liveSandboxes(client);
  return given.map((text) => (isUuid(text) ? text : pick(text, known, "sandbox", "sandbox_not_found").id));
}

async function liveSandboxes(client: Transport): Promise<SandboxRecord[]> {
  const all = await allItems(client, "listSandboxes");
  return all.filter(({ state }) => state !== "destroyed");
}
