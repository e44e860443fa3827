import type { ManagerContext } from "./context.ts";
import { checkAccess, type Credentials } from "./token.ts";

/** A living server of the same store, other than this one, with the address that it has written there. */
export interface OtherServer {
  readonly instanceId: string;
  readonly url: string;
}

const TRUSTED: Credentials = { token: undefined, trusted: true };

/**
 * The server that has a sandbox which is neither here nor on its way here. Undefined: nobody has it, or whoever has it
 * cannot be asked. Throws `permission_denied` for one who may not use the sandbox.
 */
export async function ownerElsewhere(
  context: ManagerContext,
  sandboxId: string,
  credentials: Credentials = TRUSTED,
): Promise<OtherServer | undefined> {
  if (context.sandboxes.has(sandboxId) || context.restoring.has(sandboxId)) return undefined;
  const head = await context.storedHead(sandboxId);
  if (head?.owner == null) return undefined;
  checkAccess(credentials, head.token_hash);
  return otherServer(context, head.owner);
}

export async function otherServer(context: ManagerContext, instanceId: string): Promise<OtherServer | undefined> {
  const { durable, url: ownUrl } = context.options;
  if (durable === undefined || instanceId === durable.ownership.instanceId) return undefined;
  const url = await durable.ownership.urlOf(instanceId);
  return url === undefined || url === ownUrl ? undefined : { instanceId, url };
}
