import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CellEvent, CellResult } from "@sandboxer/client";
import { formatBytes } from "../output/bytes.ts";

export interface CellPrinterOptions {
  /** Resolves when the reader has accepted it. */
  readonly write: (to: "stdout" | "stderr", text: string) => Promise<unknown>;
  /** Where pictures and documents are saved. */
  readonly folder: string;
}

const FILES = { png: "base64", jpeg: "base64", pdf: "base64", svg: "utf8" } as const;
const NAMED = ["html", "markdown", "latex", "json", "javascript", "chart"] as const;

/** Prints a cell as a prompt does: output, the text of results, and other formats as files or in a word. */
export class CellPrinter {
  readonly #options: CellPrinterOptions;
  #count = 0;
  #files = 0;

  constructor(options: CellPrinterOptions) {
    this.#options = options;
  }

  async print(event: CellEvent): Promise<void> {
    const { write } = this.#options;
    switch (event.type) {
      case "started":
        [this.#count, this.#files] = [event.executionCount, 0];
        return;
      case "error":
        await write("stderr", ended(event.error.traceback));
        return;
      case "result":
        return this.#result(event.result);
      case "end":
        return this.#end(event);
      default:
        await write(event.type, event.text);
    }
  }

  async #end({ status, exitCode, signal, timedOut }: Extract<CellEvent, { type: "end" }>): Promise<void> {
    const { write } = this.#options;
    const how = signal === null ? `with exit code ${exitCode ?? "unknown"}` : `by ${signal}`;
    if (status === "died") {
      await write("stderr", `sandboxer: the interpreter ended ${how}. Its variables are lost.\n`);
    } else if (timedOut) await write("stderr", "sandboxer: the time limit interrupted the cell.\n");
  }

  async #result(result: CellResult): Promise<void> {
    const { write, folder } = this.#options;
    if (result.text !== undefined) await write("stdout", ended(result.text));
    for (const [kind, encoding] of Object.entries(FILES) as [keyof typeof FILES, BufferEncoding][]) {
      const data = result[kind];
      if (data === undefined) continue;
      const bytes = Buffer.from(data, encoding);
      const name = await this.#save(folder, kind, bytes);
      await write("stderr", `[${kind}, ${formatBytes(bytes.length)}: saved as ${name}]\n`);
    }
    const named = NAMED.filter((kind) => result[kind] !== undefined).map((kind) => describe(kind, result[kind]));
    if (result.table !== undefined) named.push(`table of ${result.table.rowCount} rows`);
    if (result.omitted !== undefined) named.push(`too large: ${result.omitted.join(", ")}`);
    if (named.length > 0) await write("stderr", `[also ${named.join("; ")}]\n`);
  }

  /** Nothing is overwritten. */
  async #save(folder: string, kind: string, bytes: Uint8Array): Promise<string> {
    for (;;) {
      const name = `cell-${this.#count}-${(this.#files += 1)}.${kind}`;
      try {
        await writeFile(join(folder, name), bytes, { flag: "wx" });
        return name;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
    }
  }
}

function describe(kind: string, value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `${kind}, ${formatBytes(Buffer.byteLength(text))}`;
}

function ended(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}
