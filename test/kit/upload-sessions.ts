import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

export interface Answered {
  readonly answer: { readonly statusCode?: number | undefined; readonly headers: IncomingHttpHeaders };
  readonly content: Buffer;
}

interface Session {
  storedBytes: number;
  final: Answered | undefined;
}

/**
 * Answers queries for the progress of a resumable upload as Google documents them. fake-gcs-server 1.56 takes the query
 * for the end of the upload, and creates an object from the received part.
 */
export class UploadSessions {
  readonly #sessions = new Map<string, Session>();

  async answer(request: IncomingMessage, bodyBytes: number, forward: () => Promise<Answered>): Promise<Answered> {
    const range = request.headers["content-range"];
    if (request.method !== "PUT" || range === undefined) return await forward();
    const session = this.#sessions.get(request.url ?? "") ?? { storedBytes: 0, final: undefined };
    this.#sessions.set(request.url ?? "", session);
    if (range.startsWith("bytes */")) return session.final ?? incomplete(session.storedBytes);
    const answered = await forward();
    session.storedBytes += bodyBytes;
    if (answered.answer.statusCode === 200) session.final = answered;
    return answered;
  }
}

function incomplete(storedBytes: number): Answered {
  const headers = storedBytes === 0 ? {} : { range: `bytes=0-${storedBytes - 1}` };
  return { answer: { statusCode: 308, headers: { ...headers, "content-length": "0" } }, content: Buffer.alloc(0) };
}
