import { type Encryption, type Head, type Lineage, SandboxerError } from "@sandboxer/protocol";
import type { KeyChoice, KeyOptions } from "../checkpoints/data-keys.ts";
import { keyRequired, wrongKey } from "../checkpoints/keys/key-errors.ts";
import { checkpointKey } from "../checkpoints/checkpoint-names.ts";
import type { StoredDataKeys } from "../checkpoints/keys/stored-data-keys.ts";
import { imageKey, type StoredSnapshot } from "../checkpoints/snapshot-record.ts";
import { MasterKey } from "../checkpoints/keys/master-key.ts";
import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";

/** The encryption keys that a request comes with. */
export interface RequestKeys extends KeyOptions {
  /** The server secret that encrypts data of sandboxes created by the caller. */
  readonly keyName?: string | undefined;
  /**
   * Sent by a server that relays the call instead of the client's key: a text about the call and its MAC under the key.
   */
  readonly proof?: { readonly text: string; readonly mac: string } | undefined;
}

/** A saved state that a sandbox starts from: its encryption key (null: the server's default) and its origin. */
interface KeySource {
  readonly encryption: Encryption | null;
  readonly lineage: Lineage;
}

/** Parses a client's key from hex or base64; undefined if it is not a key. */
export function parseKey(text: string): MasterKey | undefined {
  return MasterKey.parse(text);
}

/**
 * The key that encrypts a new sandbox; null: the server's own key, or none. A sandbox that starts from a state with a
 * key of its own keeps that key. Otherwise the key of the request counts, then the caller's, then the server's. A
 * missing key is reported here and not at the first save.
 */
export async function encryptionFor(
  { options }: ManagerContext,
  { presentedKey, keyName }: RequestKeys = {},
  source?: KeySource,
): Promise<Encryption | null> {
  const keys = options.durable.keys;
  if (keys === undefined) return null;
  const asked: Encryption | undefined =
    presentedKey === undefined ? undefined : { held_by: "client", key: presentedKey.fingerprint };
  const ofCaller: Encryption | undefined = keyName === undefined ? undefined : { held_by: "server", key: keyName };
  const own = await encryptionOfSource(keys, source);
  const chosen = own?.held_by === "client" ? own : (asked ?? own ?? ofCaller);
  return await keys.settle({ encryption: chosen, presentedKey });
}

/** Null: the server's own key, or none. */
async function encryptionOfSource(keys: StoredDataKeys, source: KeySource | undefined): Promise<Encryption | null> {
  const { snapshot } = source?.lineage ?? {};
  if (source === undefined || snapshot == null) return source?.encryption ?? null;
  return await keys.recorded(source.encryption, imageKey(snapshot));
}

/** The key that a live sandbox is saved with. */
export function keyChoiceOf({ facts, clientKey }: LiveSandbox): KeyChoice {
  return { encryption: facts.about.encryption, presentedKey: clientKey };
}

/** The client's key to keep while a sandbox is live; undefined if the sandbox does not use a client's key. */
export function clientKeyFor(encryption: Encryption | null | undefined, keys?: RequestKeys): MasterKey | undefined {
  return encryption?.held_by === "client" ? keys?.presentedKey : undefined;
}

/**
 * For a sandbox that its provider kept while no server had its key: the next client that sends the key lets this server
 * keep it.
 */
export function takeShownKey(
  context: Pick<ManagerContext, "options">,
  sandbox: LiveSandbox,
  keys: RequestKeys | undefined,
): void {
  const { encryption } = sandbox.facts.about;
  checkNoDowngrade(context, encryption, keys);
  sandbox.clientKey ??= clientKeyFor(encryption, keys);
}

/**
 * Refuses a client's key that the record does not name. An attacker may have changed the record: the next save would
 * then be written without the client's key.
 */
export function checkNoDowngrade(
  { options }: Pick<ManagerContext, "options">,
  encryption: Encryption | null | undefined,
  { presentedKey }: RequestKeys = {},
): void {
  if (presentedKey === undefined || options.durable.keys === undefined) return;
  if (encryption?.held_by === "client") return checkShown(encryption, { presentedKey });
  const { fingerprint } = presentedKey;
  throw new SandboxerError(
    "wrong_key",
    `The sandbox's record names no client key, but the request came with the key ${fingerprint}.`,
    {
      hint: "If the sandbox was never encrypted with your key, send the request without it. If it was, someone changed its record in the store.",
      details: { given: fingerprint },
    },
  );
}

/**
 * The keys of a call on a sandbox. If another server proves that the client sent it the key, the key counts as sent to
 * this server too.
 */
export function keysShown({ clientKey }: Pick<LiveSandbox, "clientKey">, keys: RequestKeys = {}): RequestKeys {
  const { presentedKey, proof } = keys;
  if (presentedKey !== undefined || proof === undefined || clientKey?.isProved(proof.text, proof.mac) !== true)
    return keys;
  return { ...keys, presentedKey: clientKey };
}

/**
 * A caller that creates another sandbox from one with a client's key must send that key, although this server has it.
 */
export function checkShown(encryption: Encryption | null | undefined, { presentedKey }: RequestKeys = {}): void {
  if (encryption?.held_by !== "client") return;
  const { key } = encryption;
  if (presentedKey === undefined) throw keyRequired(key);
  if (presentedKey.fingerprint !== key) throw wrongKey(key, presentedKey.fingerprint, "the one that was sent");
}

/** The key that a stored sandbox is saved with from now on. */
export async function encryptionOfHead(
  { options }: ManagerContext,
  sandboxId: string,
  { about, checkpoint }: Head,
): Promise<Encryption | null> {
  const keys = options.durable.keys;
  // The state that it was created from may have another key; its own checkpoints do not.
  if (keys === undefined || checkpoint === null) return about?.encryption ?? null;
  return await keys.recorded(about?.encryption, checkpointKey(sandboxId, checkpoint.name));
}

/**
 * Checks whether this server can decrypt a stored sandbox; throws if a key is missing, before anything changes hands.
 */
export async function checkKeysFor(
  context: ManagerContext,
  sandboxId: string,
  head: Head,
  { checkpoint, presentedKey }: KeyOptions & { readonly checkpoint: string | undefined },
): Promise<void> {
  const { keys, checkpoints, snapshots } = context.durable;
  // A sandbox that its provider keeps is not encrypted.
  if (keys === undefined || head.residence === "provider") return;
  const encryption = await encryptionOfHead(context, sandboxId, head);
  checkNoDowngrade(context, encryption, { presentedKey });
  await keys.settle({ encryption, presentedKey });
  // No server has the sandbox, and it is most likely not encrypted: a failed load does no harm.
  if (keys.named(encryption) === null && head.owner === null) return;
  const name = checkpoint ?? head.checkpoint?.name;
  if (name !== undefined) await checkpoints.checkKey(sandboxId, name, { presentedKey });
  else if (head.lineage.snapshot != null) await snapshots.checkKey(head.lineage.snapshot, { presentedKey });
}

/** Data under a client's or tenant's key never becomes part of a sandbox with another key. */
export async function checkRewindTo(
  { options }: ManagerContext,
  { facts }: LiveSandbox,
  snapshot: StoredSnapshot,
): Promise<void> {
  const keys = options.durable.keys;
  const encryption = (await keys?.recorded(snapshot.encryption, imageKey(snapshot.id))) ?? null;
  if (encryption === null) return;
  const { held_by: heldBy, key } = encryption;
  const own = facts.about.encryption;
  if (own?.held_by === heldBy && own.key === key) return;
  const whose = heldBy === "client" ? "a key of its client" : `the key "${key}"`;
  throw new SandboxerError("not_supported", `The snapshot is encrypted with ${whose}, but the sandbox is not.`, {
    hint: "Restore the snapshot, which creates a new sandbox with the same key.",
    details: heldBy === "client" ? { fingerprint: key } : { key },
  });
}
