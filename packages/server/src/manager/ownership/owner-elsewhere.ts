import type { ObservingContext } from "../room-contexts.ts";
import type { PeerTls } from "./peers.ts";
import { checkAccess, type Credentials } from "../token.ts";

/** Another live server of the same store, with the address that it wrote there. */
export interface OtherServer {
  readonly instanceId: string;
  readonly url: string;
  /** Undefined: Node's authorities, and plain HTTP is allowed. */
  readonly tls?: PeerTls | undefined;
}

const TRUSTED: Credentials = { token: undefined, trusted: true };

/**
 * The server that owns a sandbox which is not on this server; until it hands the sandbox off, it still owns it.
 * Undefined: no server owns it, or its owner cannot be reached. Throws `permission_denied` for a caller who may not use
 * the sandbox.
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
  return url === undefined || url === ownUrl ? undefined : { instanceId, url, tls: context.options.peerTls?.() };
}
