import { createHash } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { CallOptions } from "../../support/call-options.ts";
import { systemClock } from "../../support/clock.ts";
import { jsonOf } from "../../support/json.ts";
import { DOCKER_HUB, type ImageReference } from "../image-reference.ts";
import { MANIFEST_TYPES, type Descriptor } from "../manifest.ts";
import { parseChallenge, type Challenge } from "./challenge.ts";
import { credentialsFor, type Credentials, type CredentialSources } from "./credentials.ts";
import { ConnectionCut, readAll, RegistryHttp, type Answer, type HttpCall, type Proxies } from "./registry-http.ts";

export interface RegistryOptions {
  readonly credentials: CredentialSources;
  readonly proxies?: Proxies;
  /** Registries that are asked over plain HTTP. */
  readonly insecure: readonly string[];
  /** Registries, and the URLs that are asked before them. */
  readonly mirrors: ReadonlyMap<string, readonly string[]>;
  /** Registries that images may come from; empty: all. */
  readonly allowed: readonly string[];
  /** How long a silent connection is waited for. For tests. */
  readonly silenceMs?: number;
}

/** A place to ask for a repository: the registry itself, or a mirror. */
interface Source {
  readonly registry: string;
  readonly base: URL;
  readonly isMirror: boolean;
}

const HUB_HOST = "registry-1.docker.io";
const ATTEMPTS = 4;
const TOKEN_BYTES = 1024 * 1024;
const ERROR_BYTES = 64 * 1024;
const REFUSED = new Set([401, 403]);
const MISSING = new Set([404, 410]);
const PASSING = new Set([408, 429, 500, 502, 503, 504]);

const tokenSchema = z.looseObject({ token: z.string().optional(), access_token: z.string().optional() });
const errorSchema = z.looseObject({
  errors: z.array(z.looseObject({ code: z.string().optional(), message: z.string().optional() })),
});

/** The OCI distribution API, for pulling. Whatever it returns is checked against the digest that names it. */
export class RegistryClient {
  readonly #options: RegistryOptions;
  readonly #http: RegistryHttp;
  /** `Authorization` by place and repository, until it is refused. */
  readonly #authorizations = new Map<string, string>();

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#http = new RegistryHttp(options.proxies, options.silenceMs);
  }

  /** The manifest or index, and its digest. */
  async manifest(
    reference: ImageReference,
    wanted: string,
    maxBytes: number,
    options: CallOptions,
  ): Promise<{ readonly bytes: Buffer; readonly digest: string }> {
    const headers = { accept: MANIFEST_TYPES.join(", ") };
    const what = `The manifest of ${reference.repository}`;
    return this.#document(reference, `manifests/${wanted}`, headers, { what, maxBytes }, options, (bytes, answer) => {
      const digest = sha256(bytes);
      const promised = wanted.startsWith("sha256:") ? wanted : answer.headers["docker-content-digest"];
      if (typeof promised === "string" && promised.startsWith("sha256:") && promised !== digest) {
        throw lie(reference, `its manifest has the digest ${digest} instead of ${promised}`);
      }
      return { bytes, digest };
    });
  }

  /** A small blob. */
  async document(
    reference: ImageReference,
    { digest, size }: Descriptor,
    maxBytes: number,
    options: CallOptions,
  ): Promise<Buffer> {
    const what = `The config of ${reference.repository}`;
    if (size > maxBytes) throw lie(reference, `its config has ${size} bytes; ${maxBytes} are allowed`);
    return this.#document(reference, `blobs/${digest}`, {}, { what, maxBytes: size }, options, (bytes) => {
      if (sha256(bytes) !== digest) throw lie(reference, `the content of ${digest} has another digest`);
      return bytes;
    });
  }

  /** A blob from an offset. The answer has status 200 (from its beginning) or 206. */
  async blob(
    reference: ImageReference,
    digest: string,
    offset: number,
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    const headers: Record<string, string> = offset === 0 ? {} : { range: `bytes=${offset}-` };
    return this.#ask(reference, `blobs/${digest}`, headers, signal, (answer) =>
      // The part that is here already may be all of it, or more than there is.
      answer.status === 200 || answer.status === 206 || answer.status === 416 ? answer : undefined,
    );
  }

  close(): void {
    this.#http.close();
  }

  async #document<Result>(
    reference: ImageReference,
    path: string,
    headers: Readonly<Record<string, string>>,
    { what, maxBytes }: { readonly what: string; readonly maxBytes: number },
    { signal }: CallOptions,
    check: (bytes: Buffer, answer: Answer) => Result,
  ): Promise<Result> {
    return this.#ask(reference, path, headers, signal, async (answer) =>
      answer.status === 200 ? check(await readAll(answer, maxBytes, what), answer) : undefined,
    );
  }

  /** The first source that has it. `read` returns undefined for an answer that is a failure. */
  async #ask<Result>(
    reference: ImageReference,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    read: (answer: Answer) => Promise<Result | undefined> | Result | undefined,
  ): Promise<Result> {
    let failure: unknown;
    for (const source of this.#sources(reference)) {
      try {
        return await this.#askSource(source, reference, path, headers, signal, read);
      } catch (error) {
        signal?.throwIfAborted();
        failure = error;
        // A mirror need not have it, work, or tell the truth.
        if (!source.isMirror) break;
      }
    }
    throw failure;
  }

  async #askSource<Result>(
    source: Source,
    reference: ImageReference,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    read: (answer: Answer) => Promise<Result | undefined> | Result | undefined,
  ): Promise<Result> {
    const url = new URL(`${source.base.href.replace(/\/+$/, "")}/v2/${reference.repository}/${path}`);
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#authorized(source, reference, url, { headers, signal });
        const result = await read(answer);
        if (result !== undefined) return result;
        throw await failureOf(reference, source, answer);
      } catch (error) {
        signal?.throwIfAborted();
        const passing =
          error instanceof ConnectionCut || (error instanceof SandboxerError && error.details["passing"] === true);
        if (!passing) throw error;
        if (attempt >= ATTEMPTS) throw error instanceof ConnectionCut ? unreachable(source, error) : error;
        await systemClock.sleep(100 * 2 ** attempt, signal);
      }
    }
  }

  async #authorized(source: Source, reference: ImageReference, url: URL, call: HttpCall): Promise<Answer> {
    const key = `${source.base.origin} ${reference.repository}`;
    const known = this.#authorizations.get(key);
    const first = await this.#http.send(url, withAuthorization(call, known));
    if (first.status !== 401) return first;
    first.body.destroy();
    const challenge = parseChallenge(first.headers["www-authenticate"]);
    const authorization =
      challenge === undefined ? undefined : await this.#meet(challenge, source, reference, call.signal);
    if (authorization === undefined) throw refusedBy(source, reference);
    this.#authorizations.set(key, authorization);
    return this.#http.send(url, withAuthorization(call, authorization));
  }

  /** The `Authorization` that a challenge asks for. */
  async #meet(
    challenge: Challenge,
    source: Source,
    reference: ImageReference,
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    const credentials = await credentialsFor(
      source.registry,
      this.#options.credentials,
      signal === undefined ? {} : { signal },
    );
    if (challenge.scheme === "basic") return credentials === undefined ? undefined : basic(credentials);
    const realm = new URL(challenge.realm);
    // A password must not travel in plain text because the registry says so.
    if (realm.protocol !== "https:" && source.base.protocol === "https:") return undefined;
    const scope = challenge.scope ?? `repository:${reference.repository}:pull`;
    const service = challenge.service === undefined ? {} : { service: challenge.service };
    const call =
      credentials?.identityToken === undefined
        ? this.#http.send(withQuery(realm, { ...service, scope }), {
            signal,
            headers: credentials === undefined ? {} : { authorization: basic(credentials) },
          })
        : this.#http.send(realm, {
            signal,
            form: new URLSearchParams({
              grant_type: "refresh_token",
              refresh_token: credentials.identityToken,
              client_id: "sandboxer",
              scope,
              ...service,
            }).toString(),
          });
    const answer = await call;
    if (answer.status !== 200) {
      answer.body.destroy();
      throw REFUSED.has(answer.status) ? refusedBy(source, reference) : await failureOf(reference, source, answer);
    }
    const parsed = tokenSchema.safeParse(jsonOf(await readAll(answer, TOKEN_BYTES, "The registry's token")));
    const token = parsed.success ? (parsed.data.token ?? parsed.data.access_token) : undefined;
    return token === undefined || /[^\x21-\x7e]/.test(token) ? undefined : `Bearer ${token}`;
  }

  #sources({ registry }: ImageReference): readonly Source[] {
    const { allowed, mirrors, insecure } = this.#options;
    if (allowed.length > 0 && !allowed.includes(registry)) {
      throw new SandboxerError("permission_denied", `This server does not pull images from ${registry}.`, {
        hint: `Use an image from ${allowed.join(", ")}, or add the registry to the server's --registries.`,
      });
    }
    const host = registry === DOCKER_HUB ? HUB_HOST : registry;
    const own = new URL(`${insecure.includes(registry) ? "http" : "https"}://${host}`);
    return [
      ...(mirrors.get(registry) ?? []).map((url) => {
        const base = new URL(url);
        return { registry: base.host, base, isMirror: true };
      }),
      { registry, base: own, isMirror: false },
    ];
  }
}

function withAuthorization(call: HttpCall, authorization: string | undefined): HttpCall {
  return authorization === undefined ? call : { ...call, headers: { ...call.headers, authorization } };
}

function withQuery(url: URL, values: Readonly<Record<string, string>>): URL {
  const full = new URL(url);
  for (const [name, value] of Object.entries(values)) full.searchParams.set(name, value);
  return full;
}

function basic({ user, password }: Credentials): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

function sha256(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

async function failureOf({ repository }: ImageReference, source: Source, answer: Answer): Promise<SandboxerError> {
  const { status } = answer;
  const text = await readAll(answer, ERROR_BYTES, "The registry's error").catch(() => Buffer.alloc(0));
  const parsed = errorSchema.safeParse(jsonOf(text));
  const said = parsed.success ? (parsed.data.errors[0]?.message ?? parsed.data.errors[0]?.code) : undefined;
  const words = said === undefined ? "" : `: ${said.slice(0, 200)}`;
  if (REFUSED.has(status)) return refusedBy(source, { repository });
  if (MISSING.has(status)) {
    return new SandboxerError("image_not_found", `${source.base.host} does not have the image ${repository}${words}`);
  }
  return new SandboxerError("registry_unavailable", `${source.base.host} answered ${status}${words}`, {
    details: { passing: PASSING.has(status) },
  });
}

function refusedBy({ base, registry }: Source, { repository }: Pick<ImageReference, "repository">): SandboxerError {
  return new SandboxerError("image_not_found", `${base.host} does not give this server the image ${repository}.`, {
    hint: `Check the name. A private image needs credentials on the server: \`docker login ${registry}\`, or --registry-secrets.`,
  });
}

function unreachable({ base }: Source, cause: ConnectionCut): SandboxerError {
  return new SandboxerError("registry_unavailable", `The registry ${base.host} cannot be reached: ${cause.message}.`, {
    cause,
    hint:
      base.protocol === "https:"
        ? "Check the name and the network. A registry without TLS needs --insecure-registry HOST on the server."
        : "Check the name, and that the registry runs.",
  });
}

/** The registry sent something else than it said. */
export function lie({ registry, repository }: ImageReference, why: string): SandboxerError {
  return new SandboxerError("bad_request", `The image ${registry}/${repository} was refused: ${why}.`, {
    hint: "The registry or something on the way to it is broken or hostile. Pull again, or use another registry.",
  });
}
