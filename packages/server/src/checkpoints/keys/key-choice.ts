import type { Encryption } from "@sandboxer/protocol";
import type { MasterKey } from "./master-key.ts";

/** What an image is to be encrypted with. */
export interface KeyChoice {
  /** Absent or null: with the server's own key, where it has one. */
  readonly encryption?: Encryption | null | undefined;
  /** The key of the client who asked, for what is under a client's key. */
  readonly presentedKey?: MasterKey | undefined;
}

/** What an image is opened with, besides the keys of the server. */
export interface KeyOptions {
  readonly presentedKey?: MasterKey | undefined;
}
