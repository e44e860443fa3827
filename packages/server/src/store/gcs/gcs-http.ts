import { BucketError } from "../bucket/bucket-error.ts";
import { withinTime } from "../bucket/time-limit.ts";
import { asBucketError, asCredentialsError, failureOf } from "./gcs-errors.ts";

/** Returns the authentication headers. */
export type Authorize = (url: string) => Promise<Headers>;

export interface GcsRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Statuses other than 2xx that are not failures. */
  readonly accept?: readonly number[];
  /** Ends the reading of a response that exceeds the time limit. */
  readonly stop?: AbortController;
}

/** Single requests to Google's JSON API: no retries, no redirects, a time limit that includes `read`. */
export class GcsHttp {
  readonly #authorize: Authorize;

  constructor(authorize: Authorize) {
    this.#authorize = authorize;
  }

  async send<T>(request: GcsRequest, read: (answer: Response) => Promise<T>): Promise<T> {
    try {
      return await withinTime(request.limitMs, request.signal, async (signal) => {
        const headers = await this.#headers(request);
        const answer = await fetch(request.url, {
          method: request.method,
          headers,
          // The upload's status looks like a redirect but is not one.
          redirect: "manual",
          signal: request.stop === undefined ? signal : AbortSignal.any([signal, request.stop.signal]),
          ...(request.body === undefined ? {} : { body: request.body as Uint8Array<ArrayBuffer> }),
        });
        if (!answer.ok && !request.accept?.includes(answer.status)) throw await failureOf(answer);
        return await read(answer);
      });
    } catch (error) {
      request.signal?.throwIfAborted();
      throw asBucketError(error);
    }
  }

  async #headers(request: GcsRequest): Promise<Headers> {
    let headers: Headers;
    try {
      headers = new Headers(await this.#authorize(request.url));
    } catch (error) {
      throw error instanceof BucketError ? error : asCredentialsError(error);
    }
    for (const [name, value] of Object.entries(request.headers ?? {})) headers.set(name, value);
    headers.set("accept-encoding", "identity");
    return headers;
  }
}

export async function ignoreBody(answer: Response): Promise<void> {
  await answer.arrayBuffer();
}
