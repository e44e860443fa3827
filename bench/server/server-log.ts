import type { Interface } from "node:readline";

export type LogRecord = Readonly<Record<string, unknown>>;

/** The server's structured log, for the phases of its operations. */
export class ServerLog {
  readonly #records: LogRecord[] = [];
  readonly #text: string[] = [];
  #wake = Promise.withResolvers<void>();

  constructor(lines: Interface) {
    lines.on("line", (line) => {
      this.#text.push(line);
      try {
        this.#records.push(JSON.parse(line) as LogRecord);
      } catch {
        // A line for people.
      }
      this.#wake.resolve();
      this.#wake = Promise.withResolvers();
    });
  }

  tail(): string {
    return this.#text.slice(-20).join("\n");
  }

  /** Waits for the first matching record. */
  async first(fits: (record: LogRecord) => boolean): Promise<LogRecord> {
    for (;;) {
      const found = this.#records.find(fits);
      if (found !== undefined) return found;
      await this.#wake.promise;
    }
  }

  /**
   * The phases of an operation on a sandbox, in ms. The record is consumed, so that the next one of its kind is found
   * later.
   */
  async phases(operation: string, sandboxId: string): Promise<Record<string, number>> {
    const record = await this.first((each) => each["operation"] === operation && each["sandboxId"] === sandboxId);
    this.#records.splice(this.#records.indexOf(record), 1);
    return record["phases"] as Record<string, number>;
  }
}
