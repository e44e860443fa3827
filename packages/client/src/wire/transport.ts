import type { RouteName } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { anySignal } from "./abort.ts";
import type { Answer, CallInput, JsonRouteName, OperationRecord, StreamRouteName, WireOptions } from "./call-types.ts";
import { checkedEncryptionKey } from "./encryption-key.ts";
import { errorOfResponse, unreachable } from "./errors.ts";
import { followOperation } from "./operation.ts";
import { addressOf, baseUrl, bodyOf, isOneShot } from "./request.ts";
import { backoff, retrying, type Backoff, type RetryOptions } from "./retry.ts";
import { isRepeatable, ROUTE_TABLE, type PlainRoute } from "./route-table.ts";

export interface ConnectionOptions {
  /** The server's URL: http or https. Default: http://127.0.0.1:8080. */
  readonly url?: string;
  /** A server key, if the server has keys. */
  readonly apiKey?: string;
  /**
   * Your own key, 32 bytes in base64 or hex: new sandboxes are saved under it, and data under it can be read. The
   * server keeps it in memory while such a sandbox runs there, and nowhere else.
   */
  readonly encryptionKey?: string;
  /** Another `fetch`, such as one with a proxy. */
  readonly fetch?: typeof globalThis.fetch;
  /** Ends every call of this client. */
  readonly signal?: AbortSignal;
  /** How temporary failures are retried. */
  readonly retry?: RetryOptions;
  /**
   * Talks only to this server, which relays calls about a sandbox that another one runs. For pages, which cannot talk
   * to any other. Default: false.
   */
  readonly relay?: boolean;
}

export const DEFAULT_URL = "http://127.0.0.1:8080";

type AnyInput = { readonly params?: object | undefined; readonly query?: object | undefined; readonly body?: unknown };

/** Makes the calls of the protocol's table: URLs, keys, errors, retries. */
export class Transport {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly #encryptionKey: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly backoff: Backoff;
  readonly relay: boolean;
  readonly #fetch: typeof globalThis.fetch;

  constructor({ url = DEFAULT_URL, apiKey, encryptionKey, fetch, signal, retry, relay = false }: ConnectionOptions) {
    this.url = baseUrl(url).href;
    this.apiKey = apiKey;
    this.#encryptionKey = encryptionKey === undefined ? undefined : checkedEncryptionKey(encryptionKey);
    this.signal = signal;
    this.backoff = backoff(retry);
    this.relay = relay;
    this.#fetch = fetch ?? ((...parameters) => globalThis.fetch(...parameters));
  }

  /** Not a field: a printed or serialised transport must not show the key. */
  get encryptionKey(): string | undefined {
    return this.#encryptionKey;
  }

  /**
   * Calls a route whose response is JSON, or empty. With `onProgress` the server responds at once with an operation,
   * which is followed to its end.
   */
  async call<Name extends JsonRouteName>(
    name: Name,
    input: CallInput<Name>,
    options: WireOptions = {},
  ): Promise<Answer<Name>> {
    const answer = await this.#request(name, input as AnyInput, options, async (response) => {
      const body: unknown = response.status === 204 ? undefined : await response.json();
      return { status: response.status, body };
    });
    if (answer.status !== 202) return answer.body as Answer<Name>;
    return (await followOperation(this, answer.body as OperationRecord, options)) as Answer<Name>;
  }

  /** Calls a route whose response is bytes; `use` reads them, and is retried with the call. */
  async read<Name extends StreamRouteName, Result>(
    name: Name,
    input: CallInput<Name>,
    options: WireOptions,
    use: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    return this.#request(name, input, options, use);
  }

  /** Server-sent events are an alternative form of a JSON response. */
  async openEvents(input: CallInput<"events">, options: WireOptions): Promise<Response> {
    return this.#request("events", input, options, async (response) => response, "text/event-stream");
  }

  /** The lines of a cell are an alternative form of its JSON response. */
  async openCell(input: CallInput<"runCell">, options: WireOptions): Promise<Response> {
    return this.#request("runCell", input, options, async (response) => response, "application/x-ndjson");
  }

  async #request<Result>(
    name: RouteName,
    input: AnyInput,
    options: WireOptions,
    use: (response: Response) => Promise<Result>,
    accept?: string,
  ): Promise<Result> {
    const route: PlainRoute = ROUTE_TABLE[name];
    const signal = anySignal(options.signal, this.signal);
    const url = addressOf(options.url ?? this.url, route.path, input as never);
    const headers = this.#headers(route, options, accept);
    const repeatable = !isOneShot(input.body) && isRepeatable(route);
    const attempt = async (uncertain: number): Promise<Result> => {
      const { headers: bodyHeaders, ...body } = bodyOf(route, input.body);
      const response = await this.#send(url, {
        method: route.method,
        headers: { ...headers, ...(bodyHeaders as Record<string, string>) },
        ...body,
        ...(signal === undefined ? {} : { signal }),
      });
      // A 404 after an attempt with an unknown outcome means that the attempt removed it.
      if (uncertain > 0 && route.method === "DELETE" && (response.status === 404 || response.status === 410)) {
        await response.body?.cancel();
        return use(new Response(null, { status: 204 }));
      }
      if (!response.ok) throw await errorOfResponse(response);
      return this.#reading(url, signal, () => use(response));
    };
    const attempts = isOneShot(input.body) ? 1 : (options.attempts ?? this.backoff.attempts);
    return retrying(attempt, { ...this.backoff, attempts }, { repeatable, signal });
  }

  #send(url: URL, init: RequestInit): Promise<Response> {
    return this.#reading(url, init.signal ?? undefined, () => this.#fetch(url.href, init));
  }

  /** A failure while a response is awaited or read is a connection failure, unless it was aborted. */
  async #reading<Result>(url: URL, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof SandboxerError) throw error;
      if (error instanceof SyntaxError) {
        throw new SandboxerError("internal", `The response from ${url.origin} is not JSON.`, {
          cause: error,
          hint: "Check that the URL is that of a sandboxer server.",
        });
      }
      throw unreachable(url.href, error);
    }
  }

  #headers(route: PlainRoute, options: WireOptions, accept: string | undefined): Record<string, string> {
    const { epoch, idempotencyKey, onProgress } = options;
    return {
      accept: accept ?? route.accept ?? "application/json",
      ...(this.apiKey === undefined ? {} : { authorization: `Bearer ${this.apiKey}`, "sandboxer-key": this.apiKey }),
      ...(this.#encryptionKey === undefined ? {} : { "sandboxer-encryption-key": this.#encryptionKey }),
      ...(epoch === undefined ? {} : { "if-sandbox-epoch": String(epoch) }),
      ...(route.idempotent === true ? { "idempotency-key": idempotencyKey ?? crypto.randomUUID() } : {}),
      ...(onProgress === undefined ? {} : { prefer: "respond-async" }),
      ...(this.relay ? { "sandboxer-relay": "allow" } : {}),
    };
  }
}
