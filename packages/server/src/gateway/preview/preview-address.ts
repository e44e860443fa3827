import { isSandboxId } from "@sandboxer/protocol";

/** A port of a sandbox that a request asks for. */
export interface PreviewTarget {
  readonly sandboxId: string;
  readonly port: number;
}

/** The names of a laptop: browsers resolve `*.localhost` to this machine. */
const LOCAL = "localhost";

export interface PreviewAddressOptions {
  /** The origin whose host is the parent of all previews, such as `https://preview.example.com`. */
  readonly domain: string | undefined;
  /** The port of this server, for the URLs below `localhost`. */
  readonly ownPort: () => number;
  /** Whether this server speaks HTTPS itself. */
  readonly isSecure?: boolean;
}

/** The names under which ports of sandboxes are opened: `{port}-{sandbox}.{domain}`. */
export class PreviewAddresses {
  readonly #domain: URL | undefined;
  readonly #ownPort: () => number;
  readonly #ownProtocol: string;

  constructor({ domain, ownPort, isSecure = false }: PreviewAddressOptions) {
    this.#domain = domain === undefined ? undefined : new URL(domain);
    this.#ownPort = ownPort;
    this.#ownProtocol = isSecure ? "https:" : "http:";
  }

  /**
   * The target of a `Host` header. Undefined: the host is not one of previews. Null: it is below the domain of previews,
   * where nothing else is ever served, but names no port of a sandbox.
   */
  targetOf(host: string | undefined): PreviewTarget | null | undefined {
    const name = hostName(host);
    const ofDomain = labelBelow(name, this.#domain?.hostname);
    if (ofDomain !== undefined) return parseLabel(ofDomain) ?? null;
    const ofMachine = labelBelow(name, LOCAL);
    return ofMachine === undefined ? undefined : parseLabel(ofMachine);
  }

  /** Whether a `Host` header names the API of E2B's dialect, `api.{domain}`. */
  isApiHost(host: string | undefined): boolean {
    return this.#domain !== undefined && hostName(host) === `api.${this.#domain.hostname}`;
  }

  /** The parent of all previews, with the port if it is not the usual one. */
  get domain(): string {
    return this.#domain?.host ?? `${LOCAL}:${this.#ownPort()}`;
  }

  urlOf({ sandboxId, port }: PreviewTarget): string {
    const label = `${port}-${sandboxId}`;
    if (this.#domain === undefined) return `${this.#ownProtocol}//${label}.${LOCAL}:${this.#ownPort()}/`;
    return `${this.#domain.protocol}//${label}.${this.#domain.host}/`;
  }
}

/** The name in a `Host` header, in lower case, without the port and the dot of the root. */
export function hostName(host: string | undefined): string {
  return (host ?? "").toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
}

function labelBelow(name: string, parent: string | undefined): string | undefined {
  return parent !== undefined && name.endsWith(`.${parent}`) ? name.slice(0, -parent.length - 1) : undefined;
}

function parseLabel(label: string): PreviewTarget | undefined {
  const [, port = "", sandboxId = ""] = /^([1-9]\d{0,4})-(.+)$/.exec(label) ?? [];
  return targetFrom(sandboxId, port);
}

/** Undefined if the texts are not a sandbox id and a port. */
export function targetFrom(sandboxId: string, port: string): PreviewTarget | undefined {
  if (!isSandboxId(sandboxId) || !/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535) return undefined;
  return { sandboxId, port: Number(port) };
}
