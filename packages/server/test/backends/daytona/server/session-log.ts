const PREFIXES = { stdout: Buffer.from([1, 1, 1]), stderr: Buffer.from([2, 2, 2]) } as const;

/**
 * The log of a command as the daemon keeps it: lines, each with the marker of its stream, a newline after the last one
 * whether or not there was one, and without empty bytes, since a shell reads them.
 */
export class SessionLog {
  readonly #parts: Buffer[] = [];
  readonly #open: Record<"stdout" | "stderr", Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  readonly #waiting = new Set<() => void>();
  #ended = false;

  get bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  add(stream: "stdout" | "stderr", data: Uint8Array): void {
    let rest = Buffer.concat([this.#open[stream], data]);
    for (let at = rest.indexOf(10); at !== -1; at = rest.indexOf(10)) {
      this.#line(stream, rest.subarray(0, at));
      rest = rest.subarray(at + 1);
    }
    this.#open[stream] = Buffer.from(rest);
  }

  end(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      if (this.#open[stream].length > 0) this.#line(stream, this.#open[stream]);
    }
    this.#ended = true;
    this.#notify();
  }

  /** From the beginning, then live, to the end of the command. */
  async *follow(): AsyncGenerator<Buffer> {
    for (let next = 0; ; next++) {
      while (next >= this.#parts.length) {
        if (this.#ended) return;
        await new Promise<void>((resolve) => this.#waiting.add(resolve));
      }
      yield this.#parts[next] ?? Buffer.alloc(0);
    }
  }

  #line(stream: "stdout" | "stderr", line: Buffer): void {
    const text = Buffer.from(line.filter((byte) => byte !== 0));
    this.#parts.push(Buffer.concat([PREFIXES[stream], text, Buffer.from("\n")]));
    this.#notify();
  }

  #notify(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }
}

/** The daemon's form of a log in responses that are not streams. */
export function splitLog(log: Buffer): { stdout: string; stderr: string } {
  const streams = { stdout: "", stderr: "" };
  for (const line of log.toString("latin1").split(/(?<=\n)/)) {
    const text = Buffer.from(line.slice(3), "latin1").toString("utf8");
    if (line.startsWith("\u0001\u0001\u0001")) streams.stdout += text;
    else if (line.startsWith("\u0002\u0002\u0002")) streams.stderr += text;
  }
  return streams;
}
