import { jsonOf } from "./json.ts";

const MAX_BODY_BYTES = 64 << 10;
const MAX_MESSAGE_LENGTH = 500;

/** The outcome of a request without a usable response. */
export interface HttpFailureFacts {
  readonly method: string;
  /** Without host and parameters, which may contain secrets. */
  readonly path: string;
  /** Undefined if there was no response at all. */
  readonly status?: number;
  /** The server's message, shortened. */
  readonly said?: string;
  /** From `Retry-After`. */
  readonly retryAfterMs?: number;
  readonly timedOut?: boolean;
}

/** One failed call. It contains no header, body or parameter of the request. */
export class HttpFailure extends Error {
  readonly facts: HttpFailureFacts;

  constructor(facts: HttpFailureFacts, what: string) {
    super(`${facts.method} ${facts.path} ${what}`);
    this.name = "HttpFailure";
    this.facts = facts;
  }
}

/** Reads the response, but no more of it than an error needs. */
export async function failureOf(method: string, path: string, answer: Response): Promise<HttpFailure> {
  const said = saidIn(await firstBytes(answer));
  const retryAfterMs = retryAfter(answer.headers.get("retry-after"), Date.now());
  const facts = {
    method,
    path,
    status: answer.status,
    ...(said === "" ? {} : { said }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  return new HttpFailure(facts, `answered ${answer.status}${said === "" ? "" : `: ${said}`}`);
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
export function retryAfter(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

/** `message` of a JSON answer, or the text itself. */
function saidIn(text: string): string {
  const body = jsonOf(text);
  const said = typeof body === "object" && body !== null && "message" in body ? body.message : text;
  const line = (Array.isArray(said) ? said.join("; ") : typeof said === "string" ? said : text).trim();
  return line.length > MAX_MESSAGE_LENGTH ? `${line.slice(0, MAX_MESSAGE_LENGTH)}…` : line;
}

async function firstBytes(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of answer.body ?? []) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_BODY_BYTES) break;
    }
  } catch {
    // The connection broke in the middle of the error; its status is enough.
  }
  return Buffer.concat(chunks).toString("utf8");
}
