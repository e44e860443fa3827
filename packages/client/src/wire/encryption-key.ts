import { SandboxerError } from "@sandboxer/protocol/errors";

const KEY = /^([0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=?|[A-Za-z0-9_-]{43}=?)$/;

/** An invalid key is not sent: it may be another secret. */
export function checkedEncryptionKey(text: string): string {
  const trimmed = text.trim();
  if (KEY.test(trimmed)) return trimmed;
  throw new SandboxerError("bad_request", "An encryption key is 32 bytes, in base64 or hex.", {
    hint: "Create one with `openssl rand -base64 32` and keep it: the server does not store it.",
  });
}

/** As a subprotocol of a WebSocket, because browsers cannot set headers on one. */
export function encryptionSubprotocol(text: string): string {
  const key = checkedEncryptionKey(text);
  const bytes = key.length === 64 ? hexToBase64(key) : key;
  return `sandboxer.encryption-key.${bytes.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

function hexToBase64(hex: string): string {
  return btoa(String.fromCodePoint(...(hex.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16))));
}
