import type { z } from "zod";
import { type Clock, systemClock } from "./clock.ts";
import { failureOf, HttpFailure } from "./http-failure.ts";
import { joinUrl, withQuery } from "./join-url.ts";
import { jsonOf } from "./json.ts";

export interface HttpJsonOptions {
  readonly baseUrl: string;
  /** Called for each request, so that a key may change. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  /** Converts a failure to the callers' error; the place for a vendor's own messages. */
  readonly explain: (failure: HttpFailure) => Error;
  /** For one attempt, up to the last byte of a JSON response. */
  readonly timeoutMs?: number;
  /** Retries of calls that may be repeated. */
  readonly attempts?: number;
  readonly clock?: Clock;
  readonly fetch?: typeof fetch;
}

export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Joined to the base URL; the caller encodes variable parts. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** Streamed; such a call is never repeated. */
  readonly bytes?: Uint8Array | AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal | undefined;
  /** 0: none, for calls that last as long as something else does. */
  readonly timeoutMs?: number;
  /** Whether repeating it is harmless. GET and DELETE are idempotent by default. */
  readonly idempotent?: boolean;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_ATTEMPTS = 4;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 10_000;
/** If a server asks for a longer wait, the caller gets an error instead. */
const MAX_RETRY_AFTER_MS = 30_000;
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * All calls to vendors' APIs: joins URLs, checks JSON with zod, applies time limits, repeats idempotent calls, and
 * keeps keys out of errors. Redirects are refused, since they would send the key elsewhere.
 */
export class HttpJson {
  readonly #options: HttpJsonOptions;
  readonly #clock: Clock;

  constructor(options: HttpJsonOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The response's JSON, parsed by the schema. */
  json<Schema extends z.ZodType>(schema: Schema, request: HttpRequest): Promise<z.output<Schema>> {
    return this.#repeat(request, async (answer) => {
      const value = jsonOf(await answer.text());
      if (value === undefined) throw this.#unusable(request, answer.status, "sent a response that is not JSON");
      const parsed = schema.safeParse(value);
      if (parsed.success) return parsed.data;
      const [issue] = parsed.error.issues;
      const where = issue === undefined ? "" : ` at ${issue.path.join(".") || "the top"}: ${issue.message}`;
      throw this.#unusable(request, answer.status, `sent a response of an unknown shape${where}`);
    });
  }

  /** For responses whose body does not matter. */
  send(request: HttpRequest): Promise<void> {
    return this.#repeat(request, async (answer) => {
      await answer.arrayBuffer();
    });
  }

  /** The response with its body unread; the time limit covers only the wait for its head. */
  async open(request: HttpRequest): Promise<Response> {
    return this.#repeat(request, (answer) => Promise.resolve(answer));
  }

  /** The authentication headers of each request. */
  headers(): Promise<Readonly<Record<string, string>>> {
    return this.#options.headers();
  }

  urlOf(path: string, query?: HttpRequest["query"]): string {
    return withQuery(joinUrl(this.#options.baseUrl, path), query);
  }

  async #repeat<Result>(request: HttpRequest, read: (answer: Response) => Promise<Result>): Promise<Result> {
    const { idempotent = request.method === "GET" || request.method === "DELETE" } = request;
    const attempts = idempotent && request.bytes === undefined ? (this.#options.attempts ?? DEFAULT_ATTEMPTS) : 1;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(request, read);
      } catch (thrown) {
        request.signal?.throwIfAborted();
        if (!(thrown instanceof HttpFailure)) throw thrown;
        const delayMs = delayBefore(thrown, attempt);
        if (attempt >= attempts || delayMs === undefined) throw this.#options.explain(thrown);
        await this.#clock.sleep(delayMs, request.signal);
      }
    }
  }

  async #attempt<Result>(request: HttpRequest, read: (answer: Response) => Promise<Result>): Promise<Result> {
    const { method, path } = request;
    const limit = new AbortController();
    const timeoutMs = request.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const timer = timeoutMs === 0 ? undefined : setTimeout(() => limit.abort(), timeoutMs);
    const signal = request.signal === undefined ? limit.signal : AbortSignal.any([limit.signal, request.signal]);
    try {
      signal.throwIfAborted();
      const own = await this.#options.headers();
      const answer = await this.#fetch(this.urlOf(path, request.query), {
        method,
        redirect: "error",
        signal,
        ...bodyOf(request),
        headers: { ...own, ...typeOf(request), ...request.headers },
      });
      if (!answer.ok) throw await failureOf(method, path, answer);
      return await read(answer);
    } catch (thrown) {
      if (thrown instanceof HttpFailure || request.signal?.aborted === true) throw thrown;
      if (limit.signal.aborted) {
        throw new HttpFailure({ method, path, timedOut: true }, `did not answer within ${timeoutMs} ms`);
      }
      if (isNetworkError(thrown)) throw new HttpFailure({ method, path }, `failed: ${reasonOf(thrown)}`);
      throw thrown;
    } finally {
      clearTimeout(timer);
    }
  }

  #fetch(url: string, init: RequestInit): Promise<Response> {
    return (this.#options.fetch ?? fetch)(url, init);
  }

  #unusable({ method, path }: HttpRequest, status: number, what: string): Error {
    return this.#options.explain(new HttpFailure({ method, path, status, said: what }, what));
  }
}

function typeOf({ json, bytes }: HttpRequest): Record<string, string> {
  if (json !== undefined) return { "content-type": "application/json" };
  return bytes === undefined ? {} : { "content-type": "application/octet-stream" };
}

/** `duplex`: a stream is sent while the response may already arrive. */
function bodyOf({ json, bytes }: HttpRequest): RequestInit & { readonly duplex?: "half" } {
  if (json !== undefined) return { body: JSON.stringify(json) };
  if (bytes === undefined) return {};
  if (bytes instanceof Uint8Array) return { body: new Uint8Array(bytes) };
  return { body: ReadableStream.from(bytes) as ReadableStream, duplex: "half" };
}

/** How long to wait before the next attempt, with jitter; undefined: no further attempt. */
export function delayBefore({ facts }: HttpFailure, attempt: number): number | undefined {
  if (facts.status !== undefined && !PASSING_STATUSES.has(facts.status)) return undefined;
  if (facts.retryAfterMs !== undefined) {
    return facts.retryAfterMs > MAX_RETRY_AFTER_MS ? undefined : facts.retryAfterMs + Math.random() * FIRST_DELAY_MS;
  }
  const full = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
  return full / 2 + (Math.random() * full) / 2;
}

/** `fetch` says "fetch failed" and has the reason in its cause. */
function isNetworkError(thrown: unknown): thrown is Error {
  return thrown instanceof TypeError || (thrown instanceof Error && thrown.name === "AbortError");
}

function reasonOf(error: Error): string {
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  const code = "code" in cause && typeof cause.code === "string" ? ` (${cause.code})` : "";
  return `${cause.message}${code}`;
}
