import { encryptionSubprotocol } from "./encryption-key.ts";

/** The subprotocol of sandboxer, which the server responds with. */
const SUBPROTOCOL = "sandboxer.v1";

/**
 * Opens a WebSocket with a key. Browsers cannot set headers on one, so the key is sent as a subprotocol everywhere: one
 * way, not two.
 */
export function openWebSocket(url: URL, apiKey: string | undefined, encryptionKey?: string): WebSocket {
  const address = new URL(url);
  address.protocol = address.protocol.replace("http", "ws");
  const protocols = [
    SUBPROTOCOL,
    ...(apiKey === undefined ? [] : [`sandboxer.bearer.${base64Url(apiKey)}`]),
    ...(encryptionKey === undefined ? [] : [encryptionSubprotocol(encryptionKey)]),
  ];
  const socket = new WebSocket(address.href, protocols);
  socket.binaryType = "arraybuffer";
  return socket;
}

function base64Url(text: string): string {
  const binary = String.fromCodePoint(...new TextEncoder().encode(text));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
