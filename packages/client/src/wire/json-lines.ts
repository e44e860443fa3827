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

/** Not every browser can iterate over a stream. */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}
