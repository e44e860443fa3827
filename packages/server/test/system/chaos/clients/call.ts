import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { machineMs } from "../machine-clock.ts";

export interface CallOptions {
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the client waits for the answer. */
  readonly patienceMs: number;
}

/** The outcome of a call for its client. `unsent`: the server was unreachable, so nothing was done. */
export type Answer = { readonly sentMs: number; readonly answeredMs: number } & (
  | { readonly kind: "answered"; readonly status: number; readonly body: unknown }
  | { readonly kind: "unsent" | "lost"; readonly reason: string }
);

/** One request on a connection of its own, sent once. */
export async function call(method: string, url: string, options: CallOptions): Promise<Answer> {
  const sentMs = machineMs();
  const content = options.body === undefined ? undefined : JSON.stringify(options.body);
  try {
    const { status, said } = await new Promise<{ status: number; said: string }>((resolve, reject) => {
      const signal = AbortSignal.timeout(Math.max(1, Math.round(options.patienceMs)));
      const headers = { ...(content === undefined ? {} : { "content-type": "application/json" }), ...options.headers };
      const request = httpRequest(url, { method, agent: false, headers, signal }, (response) => {
        text(response).then((said) => resolve({ status: response.statusCode ?? 0, said }), reject);
      });
      request.once("error", reject);
      request.end(content);
    });
    const body: unknown = said === "" ? undefined : JSON.parse(said);
    return { kind: "answered", status, body, sentMs, answeredMs: machineMs() };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const kind = code === "ECONNREFUSED" ? "unsent" : "lost";
    return { kind, reason: code ?? message, sentMs, answeredMs: machineMs() };
  }
}

export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The error of an answer; undefined if it is none. */
export function refusalOf(answer: Answer): Refusal | undefined {
  if (answer.kind !== "answered" || answer.status < 400) return undefined;
  const { error } = (answer.body ?? {}) as { error?: Partial<Refusal> };
  return { code: error?.code ?? "none", message: error?.message ?? "", details: error?.details ?? {} };
}

/** For the history of a sandbox: what came of a call, in a few words. */
export function wordsOf(answer: Answer): string {
  if (answer.kind !== "answered") return `${answer.kind} (${answer.reason})`;
  const refusal = refusalOf(answer);
  return refusal === undefined ? `${answer.status}` : `${answer.status} ${refusal.code}: ${refusal.message}`;
}
