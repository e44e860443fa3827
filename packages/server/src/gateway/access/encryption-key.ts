import type { IncomingMessage } from "node:http";
import { ENCRYPTION_KEY_HEADER, SandboxerError } from "@sandboxer/protocol";
import { parseKey, type RequestKeys } from "../../manager/encryption.ts";
import { PROOF_HEADER, proofIn } from "./encryption-proof.ts";
import { subprotocolEncryptionKey } from "./shown-credential.ts";
import type { Principal } from "./principal.ts";

/** The encryption keys of a request: the one that it sends, and the name of the one that belongs to its API key. */
export function requestKeysOf(
  { headers, method, url }: Pick<IncomingMessage, "headers" | "method" | "url">,
  { encryptionKey }: Principal,
): RequestKeys {
  const shown = headers[ENCRYPTION_KEY_HEADER] ?? subprotocolEncryptionKey(headers["sec-websocket-protocol"]);
  if (shown === undefined) return { keyName: encryptionKey, proof: proofIn(headers[PROOF_HEADER], { method, url }) };
  const presentedKey = typeof shown === "string" ? parseKey(shown) : undefined;
  // The message must not repeat the key.
  if (presentedKey === undefined) {
    throw new SandboxerError("bad_request", "Sandboxer-Encryption-Key must be 32 bytes, in base64 or hex.", {
      hint: "Create one with `openssl rand -base64 32` and keep it: the server does not store it.",
    });
  }
  return { presentedKey, keyName: encryptionKey };
}
