import { contains, parseRange, type IpAddress, type IpRange } from "./address.ts";

/** One entry of a policy's lists. */
export interface NetworkEntry {
  /** Its usual spelling. */
  readonly text: string;
  /** Absent: every port. */
  readonly port?: number;
  readonly host: { readonly range: IpRange } | { readonly domain: string; readonly below: boolean };
}

/** A destination of a connection. */
export interface Destination {
  /** The host as the program wrote it, normalised with {@link normalHost}: a name or an address. */
  readonly name: string;
  readonly port: number;
  /** The address that the name stands for; absent: it is not resolved yet. */
  readonly address?: IpAddress;
}

/** The form of an entry, for messages. */
export const ENTRY_HINT = "a domain, *.domain, address or CIDR, with an optional :port, such as *.example.com:443";

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Undefined: the text is not an entry. */
export function parseEntry(text: string): NetworkEntry | undefined {
  const [, bracketed, plain, portText] =
    /^(?:\[([^\]]*)\]|([^\]]*?))(?::([0-9]{1,5}))?$/.exec(oneColonOrNone(text)) ?? [];
  const host = bracketed ?? plain ?? "";
  const port = portText === undefined ? {} : { port: Number(portText) };
  if (port.port === 0 || (port.port ?? 0) > 65_535) return undefined;
  const suffix = portText === undefined ? "" : `:${port.port}`;
  const range = parseRange(host);
  if (range !== undefined) {
    const spelled = host.toLowerCase();
    const isSix = spelled.includes(":");
    return { text: isSix && suffix !== "" ? `[${spelled}]${suffix}` : spelled + suffix, ...port, host: { range } };
  }
  if (bracketed !== undefined) return undefined;
  if (host === "*") return { text: `*${suffix}`, ...port, host: { domain: "", below: true } };
  const below = host.startsWith("*.");
  const domain = normalHost(below ? host.slice(2) : host);
  // A text that looks like a number is an address in an unusual form, not a domain.
  if (domain === undefined || parseRange(domain) !== undefined) return undefined;
  return { text: `${below ? "*." : ""}${domain}${suffix}`, ...port, host: { domain, below } };
}

/** The address without a port: an IPv6 address has more colons than one. */
function oneColonOrNone(text: string): string {
  return !text.startsWith("[") && text.split(":").length > 2 ? `[${text}]` : text;
}

/**
 * A host as browsers normalise it: lower case, punycode, no dot at the end, addresses in their usual form. Undefined:
 * it is no host.
 */
export function normalHost(host: string): string | undefined {
  if (!/^[^\s/?#@\\:%[\]]+$/.test(host)) return undefined;
  let name: string;
  try {
    name = new URL(`http://${host}/`).hostname;
  } catch {
    return undefined;
  }
  name = name.endsWith(".") ? name.slice(0, -1) : name;
  return name.length <= 253 && name.split(".").every((label) => LABEL.test(label)) ? name : undefined;
}

export function matches({ host, port }: NetworkEntry, to: Destination): boolean {
  if (port !== undefined && port !== to.port) return false;
  if ("range" in host) return to.address !== undefined && contains(host.range, to.address);
  if (host.domain === "") return true;
  return host.below ? to.name.endsWith(`.${host.domain}`) : to.name === host.domain;
}
