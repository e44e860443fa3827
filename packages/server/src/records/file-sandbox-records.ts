import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { LockedJsonFile } from "../support/locked-json-file.ts";
import { sandboxRecordSchema, type OutlivingRecord, type SandboxRecords } from "./sandbox-records.ts";

const FILE = "sandboxes.json";

const fileSchema = z.looseObject({ format: z.literal(1), sandboxes: z.record(z.string(), sandboxRecordSchema) });
type Content = z.infer<typeof fileSchema>;

/** The records in a file of the data directory, for servers whose store, if any, is of this machine. */
export class FileSandboxRecords implements SandboxRecords {
  readonly #file: LockedJsonFile<Content>;

  constructor(dataDirectory: string) {
    this.#file = new LockedJsonFile<Content>(join(dataDirectory, FILE), fileSchema, { format: 1, sandboxes: {} });
  }

  async get(sandboxId: string): Promise<OutlivingRecord | undefined> {
    return (await this.list()).get(sandboxId);
  }

  async list(): Promise<ReadonlyMap<string, OutlivingRecord>> {
    return new Map(Object.entries((await this.#file.read()).sandboxes));
  }

  async put(sandboxId: string, record: OutlivingRecord): Promise<void> {
    await this.#file.change((content) => ({
      ...content,
      sandboxes: { ...content.sandboxes, [sandboxId]: record },
    }));
  }

  async swap(sandboxId: string, expected: OutlivingRecord, record: OutlivingRecord): Promise<boolean> {
    let swapped = false;
    await this.#file.change((content) => {
      swapped = isDeepStrictEqual(content.sandboxes[sandboxId], expected);
      return swapped ? { ...content, sandboxes: { ...content.sandboxes, [sandboxId]: record } } : content;
    });
    return swapped;
  }

  async remove(sandboxId: string): Promise<void> {
    await this.#file.change(({ sandboxes: { [sandboxId]: _removed, ...sandboxes }, ...content }) => ({
      ...content,
      sandboxes,
    }));
  }
}
