import type { ByteRange, OpenedBlob } from "../bucket/bucket-api.ts";
import { receive, receiveNothing } from "../bucket/receive.ts";
import { SMALL_LIMIT_MS } from "../bucket/time-limit.ts";
import { type GcsHttp, ignoreBody } from "./gcs-http.ts";

const RANGE_NOT_SATISFIABLE = 416;

/** Begins to read an object; a range beyond its end gives nothing. Throws `absent`. */
export async function openObject(
  http: GcsHttp,
  url: string,
  range: ByteRange,
  signal: AbortSignal | undefined,
): Promise<OpenedBlob> {
  const { start, end, version } = range;
  const stop = new AbortController();
  return await http.send(
    {
      method: "GET",
      url: version === undefined ? url : `${url}&generation=${version}`,
      limitMs: SMALL_LIMIT_MS,
      signal,
      stop,
      accept: [RANGE_NOT_SATISFIABLE],
      ...(start === 0 && end === undefined
        ? {}
        : { headers: { range: `bytes=${start}-${end === undefined ? "" : end - 1}` } }),
    },
    async (answer) => {
      const version = answer.headers.get("x-goog-generation") ?? undefined;
      if (answer.status === RANGE_NOT_SATISFIABLE || answer.body === null) {
        await ignoreBody(answer);
        return { chunks: receiveNothing(), version };
      }
      const length = answer.headers.get("content-length");
      const expectedBytes = length === null ? undefined : Number(length);
      return { chunks: receive(answer.body, expectedBytes, (reason) => stop.abort(reason)), version };
    },
  );
}
