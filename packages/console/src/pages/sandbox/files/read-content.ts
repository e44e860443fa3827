import { IMAGE_BYTES, imageType, TEXT_BYTES, textOf, type Content } from "./content.ts";
import { readPart } from "./file-calls.ts";

/** The content of a file, by its bytes: its name is not trusted. */
export async function readContent(id: string, path: string, sizeBytes: number, signal: AbortSignal): Promise<Content> {
  const bytes = await readPart(id, path, { offset: 0, length: TEXT_BYTES }, signal);
  // Some system files report that they are empty, but are not.
  const whole = bytes.length < TEXT_BYTES || sizeBytes === TEXT_BYTES;
  const type = imageType(bytes);
  if (type !== undefined) {
    if (whole) return { kind: "image", type, bytes };
    if (sizeBytes > IMAGE_BYTES) return { kind: "image", type, bytes: undefined };
    return { kind: "image", type, bytes: await readPart(id, path, { offset: 0, length: IMAGE_BYTES }, signal) };
  }
  const text = textOf(bytes, whole);
  return text === undefined ? { kind: "binary" } : { kind: "text", text, whole };
}
