import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { jsonOf } from "../../support/json.ts";

/** The folder of a layer has its files, and this record. */
export const FILES_FOLDER = "fs";
export const NOTES_FILE = "layer.json";

const paths = z.array(z.string());
const layerRecordSchema = z.object({
  diff_id: z.string(),
  /** The size of its unpacked tar. */
  bytes: z.number(),
  entries: z.number(),
  whiteouts: paths,
  opaque: paths,
  implicit: paths,
});
export type LayerRecord = z.infer<typeof layerRecordSchema>;

/** Undefined: the layer is not here. */
export async function readLayerRecord(folder: string): Promise<LayerRecord | undefined> {
  const text = await readFile(join(folder, NOTES_FILE), "utf8").catch(() => undefined);
  const parsed = layerRecordSchema.safeParse(text === undefined ? undefined : jsonOf(text));
  return parsed.success ? parsed.data : undefined;
}
