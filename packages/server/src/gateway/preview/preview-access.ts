import type { IncomingHttpHeaders } from "node:http";
import { KEY_HEADER, SandboxerError } from "@sandboxer/protocol";
import type { PortAccess } from "../../manager/ports/port-verbs.ts";
import type { AccessGate } from "../access/access-gate.ts";
import { isVisit } from "../access/browser.ts";
import { parseKey } from "../access/key-text.ts";
import { hasScope, NOBODY, type Principal, requireScope } from "../access/principal.ts";
import type { AccessRequest } from "../access/shown-credential.ts";
import type { PreviewAddresses, PreviewTarget } from "./preview-address.ts";
import { readPreviewCookies } from "./preview-cookies.ts";
import { SIGNATURE_PARAMETER, type Signature, type SignedLinks } from "./signed-links.ts";

/** The query parameter and the header with a sandbox's token. */
const TOKEN_PARAMETER = "sandbox_token";
const TOKEN_HEADER = "sandboxer-token";

/** Headers in which programs inside may have credentials of their own. */
const SHARED_HEADERS = ["authorization", "x-api-key"] as const;

const UNGUESSABLE_LENGTH = 20;

export interface PreviewAccessOptions {
  readonly gate: AccessGate;
  readonly links: SignedLinks;
  readonly addresses: PreviewAddresses;
  /** The only header that keys are read from; undefined: the usual ones. */
  readonly keyHeader?: string | undefined;
  readonly rules?: PreviewRules | undefined;
}

export interface Admission {
  /** How the caller showed that it may open the port. `open`: on a server without keys, by being on this machine. */
  readonly by: "public" | "link" | "cookie" | "token" | "key" | "open";
  readonly who: Principal;
  /** For a browser that came with a link or a token: what its cookie will hold. */
  readonly signature?: Signature;
}

/** Further rules for sandboxes with certain labels. */
export interface PreviewRules {
  /** Whether a request may open any port of the sandbox; false: only with a credential. Undefined: there is no rule. */
  isOpen(headers: IncomingHttpHeaders, sandboxId: string, labels: PortAccess["labels"]): boolean | undefined;
  /** Before a request resumes a paused sandbox; throws if it must not. */
  wake(sandboxId: string, labels: PortAccess["labels"]): Promise<void>;
}

/** Decides who may open a port of a sandbox. Private by default. */
export class PreviewAccess {
  readonly #gate: AccessGate;
  readonly #links: SignedLinks;
  readonly #addresses: PreviewAddresses;
  readonly #keyHeader: string | undefined;
  readonly #rules: PreviewRules | undefined;

  constructor({ gate, links, addresses, keyHeader, rules }: PreviewAccessOptions) {
    this.#gate = gate;
    this.#links = links;
    this.#addresses = addresses;
    this.#keyHeader = keyHeader;
    this.#rules = rules;
  }

  /**
   * `access` is undefined for a sandbox that does not exist: a stranger gets the same answer as for one that does.
   * Throws `unauthorized`, `permission_denied` or `rate_limited`.
   */
  admit(
    request: AccessRequest,
    query: URLSearchParams,
    target: PreviewTarget,
    access: PortAccess | undefined,
  ): Admission {
    const byOther = this.#withoutKey(request, query, target, access);
    if (byOther !== undefined) {
      this.#gate.countCaller(request);
      if (byOther.by === "cookie") this.#checkPage(request, target);
      return byOther;
    }
    const who = this.#gate.identify(keyedRequest(request));
    const needsCredential = access !== undefined && this.#ruleOf(request, target, access) === false;
    if (who.kind === "anonymous" && !needsCredential) {
      this.#checkPage(request, target);
      return { by: "open", who };
    }
    if (who.kind === "key" && hasScope(who, "use")) return { by: "key", who };
    if (who.kind === "key") requireScope(who, "use");
    throw this.#stranger(query);
  }

  #withoutKey(
    request: AccessRequest,
    query: URLSearchParams,
    target: PreviewTarget,
    access: PortAccess | undefined,
  ): Admission | undefined {
    const { headers } = request;
    const round = access?.linkRound(target.port) ?? 0;
    const link = this.#links.check(query.get(SIGNATURE_PARAMETER) ?? undefined, target, round);
    if (link !== undefined) return { by: "link", who: NOBODY, signature: link };
    const tokens = [query.get(TOKEN_PARAMETER), headers[TOKEN_HEADER], bearerOf(headers.authorization)];
    const hasToken = tokens.some((token) => typeof token === "string" && token !== "" && access?.isToken(token));
    if (hasToken) return { by: "token", who: NOBODY };
    const cookies = readPreviewCookies(headers.cookie);
    if (cookies.some((cookie) => this.#links.check(cookie, target, round) !== undefined))
      return { by: "cookie", who: NOBODY };
    if (access === undefined) return undefined;
    const isOpen = access.isPublic(target.port) || this.#ruleOf(request, target, access) === true;
    return isOpen ? { by: "public", who: NOBODY } : undefined;
  }

  #ruleOf({ headers }: AccessRequest, { sandboxId }: PreviewTarget, { labels }: PortAccess): boolean | undefined {
    return this.#rules?.isOpen(headers, sandboxId, labels);
  }

  /** The headers of a request that hold a credential for this server, and must not reach the program inside. */
  credentialsIn(request: AccessRequest, { by }: Admission, access: PortAccess | undefined): ReadonlySet<string> {
    const { headers } = request;
    const { authenticator } = this.#gate;
    // They belong to a proxy in front of the server.
    if (this.#keyHeader !== undefined) return new Set([this.#keyHeader, ...SHARED_HEADERS]);
    const isOurs = (name: (typeof SHARED_HEADERS)[number]): boolean => {
      const value = String(headers[name] ?? "");
      const text = bearerOf(value) ?? value;
      // Other schemes than `Bearer` are never ours.
      if (text === "" || /\s/.test(text)) return false;
      if (by === "key" && authenticator.shown(keyedRequest(request))?.text === text) return true;
      // Short keys are not compared: the program inside would learn of each guess whether it is right.
      const isKey = parseKey(text) !== undefined || (text.length >= UNGUESSABLE_LENGTH && authenticator.isKey(text));
      return isKey || access?.isToken(text) === true;
    };
    return new Set(SHARED_HEADERS.filter(isOurs));
  }

  /**
   * Browsers send cookies, and requests to this machine, on behalf of any page. Only pages of the same sandbox may use
   * them, and links that are opened in a tab.
   */
  #checkPage(request: AccessRequest, target: PreviewTarget): void {
    const { headers } = request;
    const site = headers["sec-fetch-site"];
    if (headers.origin === undefined && (site === undefined || site === "none" || site === "same-origin")) return;
    const from = headers.origin ?? headers.referer ?? "";
    const page = URL.canParse(from) ? this.#addresses.targetOf(new URL(from).host) : undefined;
    if (page?.sandboxId === target.sandboxId) return;
    if (headers.origin === undefined && isVisit(request)) return;
    throw new SandboxerError("permission_denied", "Pages from other sites cannot use this preview.", {
      hint: "Make the port public, or open the preview in a tab of its own.",
    });
  }

  #stranger(query: URLSearchParams): SandboxerError {
    const wasLink = query.has(SIGNATURE_PARAMETER) || query.has(TOKEN_PARAMETER);
    const message = wasLink
      ? "This link has expired, was withdrawn, or is for another port."
      : "This preview is private.";
    return new SandboxerError("unauthorized", message, {
      hint: "Ask its owner for a link: `sandboxer url SANDBOX PORT --expires 1h`. Programs send an API key as `Authorization: Bearer KEY`.",
    });
  }
}

/** Only the headers that a key may be in: with a header of ours, the others are the program's. Cookies hold no keys here. */
function keyedRequest(request: AccessRequest): AccessRequest {
  const { cookie: _, authorization, "x-api-key": apiKey, ...headers } = request.headers;
  if (headers[KEY_HEADER] !== undefined) return { ...request, headers };
  const shared = {
    ...(authorization === undefined ? {} : { authorization }),
    ...(apiKey === undefined ? {} : { "x-api-key": apiKey }),
  };
  return { ...request, headers: { ...headers, ...shared } };
}

/** The query without the credentials for this server. */
export function withoutCredentials(query: URLSearchParams): string {
  const passed = new URLSearchParams(query);
  passed.delete(SIGNATURE_PARAMETER);
  passed.delete(TOKEN_PARAMETER);
  return passed.size === 0 ? "" : `?${passed.toString()}`;
}

/** Whether a query has a credential; the text of all others stays exactly as it was sent. */
export function hasCredentials(query: URLSearchParams): boolean {
  return query.has(SIGNATURE_PARAMETER) || query.has(TOKEN_PARAMETER);
}

function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer\s+(\S+)\s*$/i.exec(header ?? "")?.[1];
}
