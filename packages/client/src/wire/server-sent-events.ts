import { chunksOf } from "./json-lines.ts";

export interface ServerSentEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  /** Absent if the server only sends its cursor. */
  readonly data: string | undefined;
}

/** Reads an event stream (WHATWG HTML, section 9.2) to its end. */
export async function* readServerSentEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  let fields: { id?: string; event?: string; data?: string } = {};
  for await (const bytes of chunksOf(body)) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        const { id, event, data } = fields;
        if (id !== undefined || data !== undefined) yield { id, event, data };
        fields = {};
      } else fields = withField(fields, line);
    }
  }
}

function withField<Fields extends { id?: string; event?: string; data?: string }>(
  fields: Fields,
  line: string,
): Fields {
  const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
  if (name === "id" || name === "event") return { ...fields, [name]: value };
  if (name !== "data") return fields;
  return { ...fields, data: fields.data === undefined ? value : `${fields.data}\n${value}` };
}
