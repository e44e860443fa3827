import { type Encryption, type Head, type Lineage, SandboxerError } from "@sandboxer/protocol";
import type { KeyChoice, KeyOptions } from "../checkpoints/data-keys.ts";
import { keyRequired, wrongKey } from "../checkpoints/keys/key-errors.ts";
import { checkpointKey } from "../checkpoints/checkpoint-names.ts";
import type { StoredDataKeys } from "../checkpoints/keys/stored-data-keys.ts";
import { imageKey, type StoredSnapshot } from "../checkpoints/snapshot-record.ts";
import { MasterKey } from "../checkpoints/keys/master-key.ts";
import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";

/** The keys that a request comes with. */
export interface RequestKeys extends KeyOptions {
  /** The server's key that what the caller makes is under. */
  readonly keyName?: string | undefined;
  /** Sent by a server that relays the call instead of the client's key: a text about the call, and its MAC under the key. */
  readonly proof?: { readonly text: string; readonly mac: string } | undefined;
}

/** A saved state that a sandbox begins with: what it is under, null: as its server said; and where it came from. */
interface KeySource {
  readonly encryption: Encryption | null;
  readonly lineage: Lineage;
}

/** The key of a client from its text, hex or base64; undefined: that is none. */
export function parseKey(text: string): MasterKey | undefined {
  return MasterKey.parse(text);
}

/**
 * What a new sandbox is saved under; null: the server's own key, or none. Beginning with a state that has a key of its
 * own, it stays under that; else the key of the request counts, then that of the caller, then the server's. A key that
 * is missing shows here, and not at the first save.
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

/** What a sandbox that is here is saved with. */
export function keyChoiceOf({ facts, clientKey }: LiveSandbox): KeyChoice {
  return { encryption: facts.about.encryption, presentedKey: clientKey };
}

/** The key to be kept while a sandbox is here; undefined for one that is not under its client's. */
export function clientKeyFor(encryption: Encryption | null | undefined, keys?: RequestKeys): MasterKey | undefined {
  return encryption?.held_by === "client" ? keys?.presentedKey : undefined;
}

/** One that its provider kept while no server had its key: whoever shows that now lets this one keep it. */
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
 * Refuses a client's key that the record does not name. Somebody may have changed the record: the next save would then be
 * written without the client's key.
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

/** The keys of a call on a sandbox. If another server proves that it was shown the client's key, that key counts as shown here too. */
export function keysShown({ clientKey }: Pick<LiveSandbox, "clientKey">, keys: RequestKeys = {}): RequestKeys {
  const { presentedKey, proof } = keys;
  if (presentedKey !== undefined || proof === undefined || clientKey?.isProved(proof.text, proof.mac) !== true)
    return keys;
  return { ...keys, presentedKey: clientKey };
}

/** Who makes another sandbox of one that is under its client's key has to show that, though this server has it now. */
export function checkShown(encryption: Encryption | null | undefined, { presentedKey }: RequestKeys = {}): void {
  if (encryption?.held_by !== "client") return;
  const { key } = encryption;
  if (presentedKey === undefined) throw keyRequired(key);
  if (presentedKey.fingerprint !== key) throw wrongKey(key, presentedKey.fingerprint, "the one that was sent");
}

/** What a stored sandbox is saved under from now on. */
export async function encryptionOfHead(
  { options }: ManagerContext,
  sandboxId: string,
  { about, checkpoint }: Head,
): Promise<Encryption | null> {
  const keys = options.durable.keys;
  // What it was made of may be under another key; its own checkpoints are not.
  if (keys === undefined || checkpoint === null) return about?.encryption ?? null;
  return await keys.recorded(about?.encryption, checkpointKey(sandboxId, checkpoint.name));
}

/** Whether a stored sandbox can be opened here; throws what is missing, before anything is taken from anyone. */
export async function checkKeysFor(
  context: ManagerContext,
  sandboxId: string,
  head: Head,
  { checkpoint, presentedKey }: KeyOptions & { readonly checkpoint: string | undefined },
): Promise<void> {
  const { keys, checkpoints, snapshots } = context.durable;
  // What its provider keeps is opened by nobody's key.
  if (keys === undefined || head.residence === "provider") return;
  const encryption = await encryptionOfHead(context, sandboxId, head);
  checkNoDowngrade(context, encryption, { presentedKey });
  await keys.settle({ encryption, presentedKey });
  // Of what nobody has, and what is most likely not encrypted, a failed load takes nothing away.
  if (keys.named(encryption) === null && head.owner === null) return;
  const name = checkpoint ?? head.checkpoint?.name;
  if (name !== undefined) await checkpoints.checkKey(sandboxId, name, { presentedKey });
  else if (head.lineage.snapshot != null) await snapshots.checkKey(head.lineage.snapshot, { presentedKey });
}

/** What is under a key of its client or of a tenant does not become part of a sandbox that is under another one. */
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
