import type { ManagerContext } from "../context.ts";
import { checkAccess, type Credentials } from "../token.ts";

/** A living server of the same store, other than this one, with the address that it has written there. */
export interface OtherServer {
  readonly instanceId: string;
  readonly url: string;
}

const TRUSTED: Credentials = { token: undefined, trusted: true };

/**
 * The server that has a sandbox which is not here; one that was asked for it has it until it gives it up. Undefined: nobody has it, or whoever has it
 * cannot be asked. Throws `permission_denied` for one who may not use the sandbox.
 */
export async function ownerElsewhere(
  context: ManagerContext,
  sandboxId: string,
  credentials: Credentials = TRUSTED,
): Promise<OtherServer | undefined> {
  const { state = "restoring" } = context.sandboxes.get(sandboxId) ?? {};
  if (state !== "restoring") return undefined;
  const head = await context.storedHead(sandboxId);
  if (head === undefined) return holderElsewhere(context, sandboxId, credentials);
  if (head.owner === null) return undefined;
  checkAccess(credentials, head.token_hash);
  return otherServer(context, head.owner);
}

/** Of a sandbox that its provider keeps: its record has an address, which counts if a living server of the store has it too. */
async function holderElsewhere(
  { options }: ManagerContext,
  sandboxId: string,
  credentials: Credentials,
): Promise<OtherServer | undefined> {
  const record = await options.records.get(sandboxId);
  const url = record?.stopped_at === null ? record.holder?.url : undefined;
  if (record === undefined || url == null || options.durable === undefined) return undefined;
  checkAccess(credentials, record.token_hash);
  const servers = await options.durable.ownership.servers();
  const found = servers.find((server) => server.alive && !server.here && server.url === url);
  return found === undefined ? undefined : { instanceId: found.instanceId, url };
}

export async function otherServer(context: ManagerContext, instanceId: string): Promise<OtherServer | undefined> {
  const { durable, url: ownUrl } = context.options;
  if (durable === undefined || instanceId === durable.ownership.instanceId) return undefined;
  const url = await durable.ownership.urlOf(instanceId);
  return url === undefined || url === ownUrl ? undefined : { instanceId, url };
}
