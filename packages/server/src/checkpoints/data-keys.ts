import type { Encryption } from "@sandboxer/protocol";
import type { MasterKey } from "./keys/master-key.ts";

/** A key that images are encrypted with. */
export interface DataKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** The data keys of a store. Each is kept encrypted by a key that is not in the store. */
export interface DataKeys {
  /**
   * `key_required` when the key of its client is needed, `wrong_key` when another one was given, `key_unavailable` when
   * this server lacks its own; each names what is needed. `image_damaged` when there is no such data key any more.
   */
  open(keyId: string, options?: KeyOptions): Promise<Uint8Array>;
}

/** What an image is opened with, besides the keys of the server. */
export interface KeyOptions {
  /** The key of the client who asked, for what is under a client's key. */
  readonly presentedKey?: MasterKey | undefined;
}

/** What an image is to be encrypted with. */
export interface KeyChoice extends KeyOptions {
  /** Absent or null: with the server's own key, where it has one. */
  readonly encryption?: Encryption | null | undefined;
}
