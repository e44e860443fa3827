import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SandboxerError, type Scope } from "@sandboxer/protocol";
import { systemClock, type Clock } from "../../support/clock.ts";
import { replaceFile } from "../../support/replace-file.ts";
import { acquireFileLock } from "../../support/file-lock.ts";
import { readKeyFile, type KeyFileContent, type KeyRecord } from "./key-records.ts";
import { digest, keyText, newKeyParts } from "./key-text.ts";

export interface NewKey {
  readonly name: string;
  readonly scope: Scope;
  readonly expiresInMs?: number | undefined;
  /** The name of the server secret that encrypts data of its sandboxes. */
  readonly encryptionKey?: string | undefined;
}

/** No characters that would move a cursor or hide in a list. */
const NAME = /^[^\p{C}\s](?:[^\p{C}]{0,62}[^\p{C}\s])?$/u;
const LOCK_WAIT_MS = 10_000;
const FAR_FUTURE_MS = Date.UTC(9999, 0);

export function keyFilePath(dataDirectory: string): string {
  return join(dataDirectory, "keys.json");
}

/** The keys of a data directory. Several processes may change it at once; servers detect changes. */
export class KeyFile {
  readonly path: string;
  readonly #clock: Pick<Clock, "wallMs">;

  constructor(dataDirectory: string, clock: Pick<Clock, "wallMs"> = systemClock) {
    this.path = keyFilePath(dataDirectory);
    this.#clock = clock;
  }

  list(): readonly KeyRecord[] {
    return readKeyFile(this.path).keys;
  }

  /** `text` is the key itself, which cannot be shown again. */
  async create({ name, scope, expiresInMs, encryptionKey }: NewKey): Promise<{ text: string; record: KeyRecord }> {
    if (!NAME.test(name)) {
      throw new SandboxerError("bad_request", "A key name must have 1 to 64 printable characters.");
    }
    const parts = newKeyParts();
    const nowMs = this.#clock.wallMs();
    const record: KeyRecord = {
      id: parts.id,
      name,
      scope,
      sha256: digest(parts.secret).toString("hex"),
      created_at: new Date(nowMs).toISOString(),
      expires_at: expiresInMs === undefined ? null : timeAfter(nowMs, expiresInMs),
      revoked_at: null,
      ...(encryptionKey === undefined ? {} : { encryption_key: encryptionKey }),
    };
    await this.#update((content) => ({ ...content, keys: [...content.keys, record] }));
    return { text: keyText(parts), record };
  }

  /** Revokes the key whose id begins with the prefix. Revoking again changes nothing. */
  async revoke(idPrefix: string): Promise<KeyRecord> {
    const revokedAt = new Date(this.#clock.wallMs()).toISOString();
    let id = "";
    const content = await this.#update((before) => {
      id = findKey(before.keys, idPrefix).id;
      const revoke = (key: KeyRecord): KeyRecord =>
        key.id === id ? { ...key, revoked_at: key.revoked_at ?? revokedAt } : key;
      return { ...before, keys: before.keys.map(revoke) };
    });
    return findKey(content.keys, id);
  }

  async #update(change: (content: KeyFileContent) => KeyFileContent): Promise<KeyFileContent> {
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    const lock = await acquireFileLock(`${this.path}.lock`, { waitMs: LOCK_WAIT_MS });
    if (lock === undefined) {
      throw new SandboxerError("timeout", `Another process has held ${this.path}.lock for too long.`);
    }
    try {
      const content = change(readKeyFile(this.path));
      await replaceFile(this.path, `${JSON.stringify(content, null, 2)}\n`);
      return content;
    } finally {
      await lock.release();
    }
  }
}

function findKey(keys: readonly KeyRecord[], idPrefix: string): KeyRecord {
  const found = idPrefix === "" ? [] : keys.filter(({ id }) => id.startsWith(idPrefix));
  const [only] = found;
  // The message must not repeat the input: it may be the key itself.
  if (only === undefined) throw new SandboxerError("key_not_found", "No key id begins with this.");
  if (found.length === 1) return only;
  const list = found.map(({ id, name }) => `${id} (${name})`).join(", ");
  throw new SandboxerError("bad_request", `Several key ids begin with this: ${list}.`, {
    hint: "Give more of the id.",
  });
}

function timeAfter(nowMs: number, durationMs: number): string {
  const endMs = nowMs + durationMs;
  if (endMs < FAR_FUTURE_MS) return new Date(endMs).toISOString();
  throw new SandboxerError("bad_request", "A key cannot expire that far in the future.", {
    hint: "Omit --expires for a key that does not expire.",
  });
}
