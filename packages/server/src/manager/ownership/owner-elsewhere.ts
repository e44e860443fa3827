import type { ObservingContext } from "../room-contexts.ts";
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
  context: ObservingContext,
  sandboxId: string,
  credentials: Credentials = TRUSTED,
): Promise<OtherServer | undefined> {
  const { state = "restoring" } = context.sandboxes.get(sandboxId) ?? {};
  if (state !== "restoring") return undefined;
  const head = await context.storedHead(sandboxId);
  if (head === undefined || head.owner === null) return undefined;
  checkAccess(credentials, head.token_hash);
  return otherServer(context, head.owner);
}

export async function otherServer(context: ObservingContext, instanceId: string): Promise<OtherServer | undefined> {
  const { ownership } = context.durable;
  const { url: ownUrl } = context.options;
  if (instanceId === ownership.instanceId) return undefined;
  const url = await ownership.instances.urlOf(instanceId);
  return url === undefined || url === ownUrl ? undefined : { instanceId, url };
}
