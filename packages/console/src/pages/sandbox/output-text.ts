export interface OutputPart {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

/**
 * The newest output of a program as text, with its streams. Terminal sequences are removed; invalid UTF-8 is replaced.
 */
export class OutputText {
  readonly #maxBytes: number;
  #pieces: { readonly stream: OutputPart["stream"]; readonly text: string; readonly bytes: number }[] = [];
  #bytes = 0;
  #dropped = 0;
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get droppedBytes(): number {
    return this.#dropped;
  }

  push(stream: OutputPart["stream"], data: Uint8Array): void {
    const text = this.#decoders[stream].decode(data, { stream: true });
    this.#pieces.push({ stream, text, bytes: data.length });
    this.#bytes += data.length;
    while (this.#bytes > this.#maxBytes && this.#pieces.length > 1) {
      const { bytes } = this.#pieces.shift() ?? { bytes: 0 };
      this.#bytes -= bytes;
      this.#dropped += bytes;
    }
  }

  /** Adjacent chunks of one stream are one part. */
  parts(): OutputPart[] {
    const parts: { stream: OutputPart["stream"]; text: string }[] = [];
    for (const { stream, text } of this.#pieces) {
      const last = parts.at(-1);
      if (last?.stream === stream) last.text += text;
      else parts.push({ stream, text });
    }
    return parts.map(({ stream, text }) => ({ stream, text: plainText(text) }));
  }
}

// oxlint-disable-next-line no-control-regex
const SEQUENCES = /\u{1b}(?:\[[0-?]*[ -/]*[@-~]|\][^\u{7}\u{1b}]*(?:\u{7}|\u{1b}\\)|[@-Z\\^_])/gu;
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u{0}-\u{8}\u{b}\u{c}\u{e}-\u{1f}\u{7f}]/gu;

/** Without terminal sequences. */
export function plainText(text: string): string {
  return text.replace(SEQUENCES, "").replaceAll("\r\n", "\n").replace(CONTROLS, "");
}
