import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { PreviewAddresses } from "../preview/preview-address.ts";

/** The path below which E2B's dialect is served. */
export const E2B_PREFIX = "/e2b";

/** The ports that E2B's clients use for processes and files, and for the code interpreter. The server answers both. */
export const ENVD_PORT = 49_983;
export const INTERPRETER_PORT = 49_999;

/** Headers that name the sandbox and the port of a request. */
export const SANDBOX_HEADER = "e2b-sandbox-id";
export const PORT_HEADER = "e2b-sandbox-port";

/** A part of E2B's surface, and the route that it is led to. Nothing else is at these routes. */
export const INTERNAL_ROUTES = {
  control: E2B_PREFIX,
  envd: "/internal/e2b/envd",
  interpreter: "/internal/e2b/interpreter",
  port: "/internal/e2b/port",
} as const;

export interface E2bTarget {
  /** As the client names it; undefined: only a signed URL of a file, which names none. */
  readonly sandboxId: string | undefined;
  /** Not a number if the header is none. */
  readonly port: number;
}

export interface E2bPart {
  readonly kind: keyof typeof INTERNAL_ROUTES;
  /** Undefined for the control plane. */
  readonly target: E2bTarget | undefined;
  /** With the query, without the prefix. */
  readonly path: string;
}

/**
 * Decides which requests are in E2B's dialect. The control plane is below `/e2b` and on the host `api.{domain}`. A
 * request to a sandbox names it in its headers, below `/e2b`, or in its host `{port}-{id}.{domain}`.
 */
export class E2bRouter {
  readonly #addresses: PreviewAddresses;
  readonly #parts = new WeakMap<IncomingMessage, E2bPart>();

  constructor(addresses: PreviewAddresses) {
    this.#addresses = addresses;
  }

  /** Whether the request is in E2B's dialect. */
  takes(request: IncomingMessage): boolean {
    const part = this.#read(request);
    if (part !== undefined) this.#parts.set(request, part);
    return part !== undefined;
  }

  /** The URL that Fastify routes. */
  rewrite(request: IncomingMessage): string {
    const { kind, path } = this.partOf(request);
    return INTERNAL_ROUTES[kind] + (kind === "port" ? "" : path);
  }

  /** For a request that {@link takes} accepts. */
  partOf(request: IncomingMessage): E2bPart {
    const part = this.#parts.get(request);
    if (part === undefined) throw new Error("The request is not in E2B's dialect.");
    return part;
  }

  #read({ url = "/", headers }: IncomingMessage): E2bPart | undefined {
    const onHost = this.#addresses.targetOf(headers.host);
    if (onHost != null) {
      const kind = kindOf(onHost.port);
      return kind === "port" ? undefined : { kind, target: onHost, path: url };
    }
    if (this.#addresses.isApiHost(headers.host)) return { kind: "control", target: undefined, path: url };
    // Below the domain of previews, but no port of a sandbox.
    if (onHost === null) return undefined;
    const path = below(url);
    const target = path === undefined ? undefined : namedIn(headers);
    if (path !== undefined && target !== undefined) return { kind: kindOf(target.port), target, path };
    if (isSignedFile(path ?? url)) {
      return { kind: "envd", target: { sandboxId: undefined, port: ENVD_PORT }, path: path ?? url };
    }
    return path === undefined ? undefined : { kind: "control", target: undefined, path };
  }
}

function kindOf(port: number): "envd" | "interpreter" | "port" {
  if (port === ENVD_PORT) return "envd";
  return port === INTERPRETER_PORT ? "interpreter" : "port";
}

/** The path below the prefix; undefined: it is elsewhere. */
function below(url: string): string | undefined {
  if (!url.startsWith(E2B_PREFIX)) return undefined;
  const rest = url.slice(E2B_PREFIX.length);
  return rest === "" || rest.startsWith("?") ? `/${rest}` : rest.startsWith("/") ? rest : undefined;
}

function namedIn(headers: IncomingHttpHeaders): E2bTarget | undefined {
  const sandboxId = headers[SANDBOX_HEADER];
  if (typeof sandboxId !== "string") return undefined;
  const port = headers[PORT_HEADER] ?? String(ENVD_PORT);
  return { sandboxId, port: typeof port === "string" && /^[1-9]\d{0,4}$/.test(port) ? Number(port) : Number.NaN };
}

/** The clients build these URLs from the origin alone, without the prefix and without the sandbox. */
function isSignedFile(url: string): boolean {
  const [path, query = ""] = url.split("?", 2);
  return path === "/files" && new URLSearchParams(query).has("signature");
}
