import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { SandboxerError } from "@sandboxer/protocol";

/** Proxies as programs find them in their environment. */
export interface Proxies {
  readonly http?: string | undefined;
  readonly https?: string | undefined;
  /** Hosts that are reached without a proxy, separated by commas. */
  readonly none?: string | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Must be read or destroyed. */
  readonly body: IncomingMessage;
}

export interface HttpCall {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent with POST. */
  readonly form?: string;
  readonly signal?: AbortSignal | undefined;
}

const MAX_REDIRECTS = 5;
/** A connection on which nothing arrives for so long counts as cut. */
const SILENCE_MS = 30_000;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** The connection failed, or ended too early: worth another attempt. */
export class ConnectionCut extends Error {}

/** HTTP to registries, which are not trusted: few redirects, never from HTTPS to HTTP, and no key for another host. */
export class RegistryHttp {
  readonly #proxies: Proxies;
  readonly #silenceMs: number;
  #agents: { readonly http: import("node:http").Agent; readonly https: import("node:https").Agent } | undefined;

  constructor(proxies: Proxies = {}, silenceMs = SILENCE_MS) {
    this.#proxies = proxies;
    this.#silenceMs = silenceMs;
  }

  /** Follows redirects. */
  async send(start: URL, call: HttpCall = {}): Promise<Answer> {
    let url = start;
    let { headers = {} } = call;
    for (let redirects = 0; ; redirects++) {
      const answer = await this.#once(url, headers, call);
      const { location } = answer.headers;
      if (!REDIRECTS.has(answer.status) || location === undefined) return answer;
      answer.body.destroy();
      if (redirects >= MAX_REDIRECTS) {
        throw new SandboxerError("registry_unavailable", `${start.host} redirects more than ${MAX_REDIRECTS} times.`);
      }
      const next = URL.canParse(location, url) ? new URL(location, url) : undefined;
      const isDowngrade = url.protocol === "https:" && next?.protocol !== "https:";
      // A form has a credential in it.
      const takesForm = call.form !== undefined && next?.origin !== url.origin;
      if (next === undefined || !/^https?:$/.test(next.protocol) || isDowngrade || takesForm) {
        throw new SandboxerError("registry_unavailable", `${url.host} redirects to an address that is not safe.`);
      }
      if (next.origin !== url.origin) {
        const { authorization: _, ...others } = headers;
        headers = others;
      }
      url = next;
    }
  }

  close(): void {
    this.#agents?.http.destroy();
    this.#agents?.https.destroy();
  }

  #once(url: URL, headers: Readonly<Record<string, string>>, { signal, form }: HttpCall): Promise<Answer> {
    // Loaded when it is first needed: most servers start without a registry.
    const [http, https] = [process.getBuiltinModule("node:http"), process.getBuiltinModule("node:https")];
    this.#agents ??= this.#connect(http, https);
    const secure = url.protocol === "https:";
    const agent = secure ? this.#agents.https : this.#agents.http;
    const sent = { "user-agent": "sandboxer", ...headers };
    return new Promise((resolve, reject) => {
      const request = (secure ? https : http).request(url, {
        agent,
        method: form === undefined ? "GET" : "POST",
        headers: form === undefined ? sent : { ...sent, "content-type": "application/x-www-form-urlencoded" },
        timeout: this.#silenceMs,
        ...(signal === undefined ? {} : { signal }),
      });
      request.once("response", (body) => resolve({ status: body.statusCode ?? 0, headers: body.headers, body }));
      request.once("timeout", () => request.destroy(new ConnectionCut(`${url.host} did not answer in time`)));
      request.on("error", (error) => {
        if (signal?.aborted === true) reject(signal.reason as Error);
        else
          reject(
            error instanceof ConnectionCut
              ? error
              : new ConnectionCut(`${url.host}: ${error.message}`, { cause: error }),
          );
      });
      request.end(form);
    });
  }

  #connect(
    http: typeof import("node:http"),
    https: typeof import("node:https"),
  ): {
    readonly http: import("node:http").Agent;
    readonly https: import("node:https").Agent;
  } {
    const { http: plain, https: secure, none } = this.#proxies;
    // Node before 22.21 ignores it.
    const proxyEnv = {
      ...(plain === undefined ? {} : { HTTP_PROXY: plain }),
      ...(secure === undefined ? {} : { HTTPS_PROXY: secure }),
      ...(none === undefined ? {} : { NO_PROXY: none }),
    };
    const options = { keepAlive: true, proxyEnv };
    return { http: new http.Agent(options), https: new https.Agent(options) };
  }
}

/** Reads a small document. */
export async function readAll({ body }: Answer, maxBytes: number, what: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        throw new SandboxerError("bad_request", `${what} is larger than the ${maxBytes} bytes that are allowed.`);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof SandboxerError ? error : new ConnectionCut(`the connection was cut`, { cause: error });
  } finally {
    body.destroy();
  }
  return Buffer.concat(chunks);
}
