import { SandboxerError } from "@sandboxer/protocol";

/** The address of a Docker engine, in the form of `node:http`. */
export interface EngineAddress {
  /** As it was given, for messages. */
  readonly text: string;
  readonly connection:
    | { readonly socketPath: string }
    | { readonly protocol: "http:" | "https:"; readonly hostname: string; readonly port: number };
}

const PLAIN_PORT = 2375;
const TLS_PORT = 2376;

/** Parses the value of `DOCKER_HOST`. */
export function parseEngineAddress(text: string): EngineAddress {
  const socketPath = /^unix:\/\/(\/.+)$/.exec(text)?.[1];
  if (socketPath !== undefined) return { text, connection: { socketPath } };
  const url = URL.parse(text.replace(/^tcp:/, "http:"));
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "" || !/^\/?$/.test(url.pathname)) {
    throw new SandboxerError("bad_request", `${JSON.stringify(text)} is not the address of a Docker engine.`, {
      hint: "Use unix:///PATH, tcp://HOST:PORT or https://HOST:PORT. For an engine behind SSH, forward its socket with ssh -L.",
    });
  }
  const protocol = url.protocol === "https:" ? "https:" : "http:";
  const fallback = protocol === "https:" ? TLS_PORT : PLAIN_PORT;
  // An IPv6 address is in brackets only in a URL.
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { text, connection: { protocol, hostname, port: url.port === "" ? fallback : Number(url.port) } };
}
