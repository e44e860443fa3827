import { join } from "node:path";
import { z } from "zod";
import { LockedJsonFile } from "../support/locked-json-file.ts";
import { imageDefaultsSchema } from "./manifest.ts";

const entrySchema = z.object({
  /** Full names with tags, and pinned names of the index that it was asked for by. */
  names: z.array(z.string()),
  /** `registry/repository`: it can be pulled from there again. */
  repository: z.string(),
  /** Lowest first. */
  diff_ids: z.array(z.string()),
  /** The unpacked size of all layers. */
  bytes: z.number(),
  defaults: imageDefaultsSchema,
  /** False while it is pulled. */
  ready: z.boolean(),
  pulled_at: z.string(),
  last_used_at: z.string(),
  /** Ids of processes that pull or use it; see `holders.ts`. */
  held_by: z.array(z.string()),
});
export type ImageEntry = z.infer<typeof entrySchema>;

const indexSchema = z.object({ version: z.literal(1), images: z.record(z.string(), entrySchema) });
type Index = z.infer<typeof indexSchema>;

/** The images on this machine by the digest of their manifest. Several servers share the file. */
export class ImageIndex {
  readonly #file: LockedJsonFile<Index>;

  constructor(folder: string) {
    this.#file = new LockedJsonFile(join(folder, "images.json"), indexSchema, { version: 1, images: {} });
  }

  async read(): Promise<ReadonlyMap<string, ImageEntry>> {
    return new Map(Object.entries((await this.#file.read()).images));
  }

  /** `change` may alter the map and replace entries in it; it runs alone. */
  async change<Result>(change: (images: Map<string, ImageEntry>) => Result): Promise<Result> {
    let result: { readonly value: Result } | undefined;
    await this.#file.change((present) => {
      const images = new Map(Object.entries(present.images));
      result = { value: change(images) };
      return { version: 1, images: Object.fromEntries(images) };
    });
    return (result as { readonly value: Result }).value;
  }
}
