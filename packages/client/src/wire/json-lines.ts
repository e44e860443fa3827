/** Reads a response with one JSON document in each line. A line without an end was cut off, and is dropped. */
export async function* readJsonLines<Line>(body: ReadableStream<Uint8Array>): AsyncGenerator<Line, void, undefined> {
  const decoder = new TextDecoder();
  // Joined only at a line break: a line may be long.
  let parts: string[] = [];
  for await (const bytes of chunksOf(body)) {
    const lines = decoder.decode(bytes, { stream: true }).split("\n");
    parts.push(lines.shift() ?? "");
    for (const next of lines) {
      yield JSON.parse(parts.join("")) as Line;
      parts = [next];
    }
  }
}

/** The lines of a response. One of a known length was sent in one piece, and reading it as a stream would take longer. */
export async function* jsonLinesOf<Line>(response: Response): AsyncGenerator<Line, void, undefined> {
  if (!response.headers.has("content-length")) {
    if (response.body !== null) yield* readJsonLines<Line>(response.body);
    return;
  }
  const lines = (await response.text()).split("\n");
  for (const line of lines.slice(0, -1)) yield JSON.parse(line) as Line;
}

/** Not every browser can iterate over a stream. */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}
