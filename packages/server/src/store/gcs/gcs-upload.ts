import type { LargeUpload, UploadOptions } from "../bucket/bucket-api.ts";
import { BucketError, hasFailed } from "../bucket/bucket-error.ts";
import { PART_LIMIT_MS, SMALL_LIMIT_MS } from "../bucket/time-limit.ts";
import { type GcsHttp, type GcsRequest, ignoreBody } from "./gcs-http.ts";

/** Google's statuses of an incomplete and of a cancelled upload. */
const INCOMPLETE = 308;
const CANCELLED = 499;

interface Progress {
  readonly complete: boolean;
  readonly storedBytes: number;
}

/** A resumable upload: one part after the other; the last one makes the object visible. */
export class GcsUpload implements LargeUpload {
  readonly #http: GcsHttp;
  readonly #session: string;
  readonly #options: UploadOptions;
  #sending: Promise<void> = Promise.resolve();
  #acceptedBytes = 0;
  #complete = false;

  constructor(http: GcsHttp, session: string, options: UploadOptions) {
    this.#http = http;
    this.#session = session;
    this.#options = options;
  }

  /** The next part is collected while this one is being sent. */
  async add(part: Uint8Array, last: boolean): Promise<void> {
    await this.#sending;
    this.#sending = this.#send(part, last);
    // A failure surfaces at the next `await`.
    this.#sending.catch(() => undefined);
  }

  async finish(): Promise<void> {
    await this.#sending;
    if (!this.#complete) throw lost("it is incomplete although everything was sent");
  }

  async abort(): Promise<void> {
    await this.#sending.catch(() => undefined);
    const request = { method: "DELETE", url: this.#session, limitMs: SMALL_LIMIT_MS } as const;
    await this.#options.retry(() => this.#http.send({ ...request, accept: [CANCELLED, 404, 410] }, ignoreBody));
  }

  async #send(part: Uint8Array, last: boolean): Promise<void> {
    const end = this.#acceptedBytes + part.byteLength;
    const total = last ? `${end}` : "*";
    let unsure = false;
    while (this.#acceptedBytes < end && !this.#complete) {
      await this.#options.retry(async () => {
        // After an attempt without an answer, the store knows how much it received.
        if (unsure) this.#advance(await this.#ask(total), end);
        if (this.#acceptedBytes >= end || this.#complete) return;
        unsure = true;
        const rest = part.subarray(part.byteLength - (end - this.#acceptedBytes));
        const range = `bytes ${this.#acceptedBytes}-${end - 1}/${total}`;
        this.#advance(await this.#put(range, rest, PART_LIMIT_MS), end);
        unsure = false;
      });
    }
  }

  /** A complete object that is shorter than what was sent is not ours: emulators create such objects. */
  #advance({ complete, storedBytes }: Progress, end: number): void {
    if (storedBytes > end || storedBytes < (complete ? end : this.#acceptedBytes)) {
      throw lost(`it has ${storedBytes} bytes; ${this.#acceptedBytes} to ${end} were expected`);
    }
    this.#complete = complete;
    this.#acceptedBytes = storedBytes;
  }

  async #ask(total: string): Promise<Progress> {
    return await this.#put(`bytes */${total}`, undefined, SMALL_LIMIT_MS);
  }

  async #put(range: string, body: Uint8Array | undefined, limitMs: number): Promise<Progress> {
    const request: GcsRequest = {
      method: "PUT",
      url: this.#session,
      headers: { "content-range": range },
      limitMs,
      signal: this.#options.signal,
      accept: [INCOMPLETE],
      ...(body === undefined ? {} : { body }),
    };
    try {
      return await this.#http.send(request, progressOf);
    } catch (error) {
      throw hasFailed(error, "absent") ? lost(error.message) : error;
    }
  }
}

async function progressOf(answer: Response): Promise<Progress> {
  if (answer.ok) return { complete: true, storedBytes: Number(((await answer.json()) as { size?: string }).size) };
  await ignoreBody(answer);
  const lastByte = /(\d+)$/.exec(answer.headers.get("range") ?? "")?.[1];
  return { complete: false, storedBytes: lastByte === undefined ? 0 : Number(lastByte) + 1 };
}

function lost(reason: string): BucketError {
  return new BucketError({ kind: "refused", reason: "request" }, `the store has lost the upload: ${reason}.`);
}
