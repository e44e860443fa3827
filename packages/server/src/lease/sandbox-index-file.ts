import { createHash } from "node:crypto";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isSandboxId } from "@sandboxer/protocol";
import { z } from "zod";
import { replaceFile } from "../support/replace-file.ts";
import type { IndexedSandbox, IndexFile } from "./sandbox-index.ts";

/** Format 1 did not have the last field of a line; such a file is written again. */
const headSchema = z.looseObject({ format: z.literal(2), store: z.string() });
const lineSchema = z.tuple([
  z.string().refine(isSandboxId),
  z.string(),
  z.string().nullable(),
  z.string(),
  z.boolean(),
]);

/** The index of one store in a folder of this machine: a line of JSON for the file, then one for each sandbox. */
export class SandboxIndexFile implements IndexFile {
  readonly #path: string;
  readonly #store: string;

  constructor(folder: string, store: string) {
    const name = createHash("sha256").update(store).digest("hex").slice(0, 32);
    this.#path = join(folder, `${name}.jsonl`);
    this.#store = store;
  }

  async read(): Promise<readonly IndexedSandbox[]> {
    const file = await open(this.#path);
    // Not `await using`: Node 22 cannot parse it.
    try {
      const entries: IndexedSandbox[] = [];
      let isHead = true;
      for await (const line of file.readLines()) {
        if (isHead && headSchema.parse(JSON.parse(line)).store !== this.#store) return [];
        if (!isHead) entries.push(fromLine(line));
        isHead = false;
      }
      return entries;
    } finally {
      await file.close();
    }
  }

  async write(entries: Iterable<IndexedSandbox>): Promise<void> {
    const lines = [JSON.stringify({ format: 2, store: this.#store })];
    for (const { sandboxId, createdAt, key, backend, restarts } of entries)
      lines.push(JSON.stringify([sandboxId, createdAt, key, backend, restarts]));
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    await replaceFile(this.#path, `${lines.join("\n")}\n`);
  }
}

function fromLine(line: string): IndexedSandbox {
  const [sandboxId, createdAt, key, backend, restarts] = lineSchema.parse(JSON.parse(line));
  return { sandboxId, createdAt, key, backend, restarts };
}
