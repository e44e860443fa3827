import type { IncomingHttpHeaders } from "node:http";
import type { AttributeSet } from "../../../manager/files/user-files.ts";
import { E2bError } from "../errors.ts";
import { METADATA_PREFIX } from "./entry-view.ts";

const HEADER = "x-metadata-";
const MAX_KEY_BYTES = 246;
const MAX_TOTAL_BYTES = 4096;

/** The metadata that an upload gives to its files. Without any, those of an existing file are removed. */
export function metadataIn(headers: IncomingHttpHeaders): AttributeSet {
  const values = new Map<string, string>();
  let total = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(HEADER)) continue;
    const key = name.slice(HEADER.length);
    const text = Array.isArray(value) ? value.join(", ") : (value ?? "");
    if (key === "" || key.length > MAX_KEY_BYTES)
      throw new E2bError(400, "A key of the metadata is empty or too long.");
    if (!/^[\x20-\x7e]*$/.test(text)) throw new E2bError(400, `The metadata ${key} is not printable ASCII.`);
    total += key.length + text.length;
    values.set(key, text);
  }
  if (total > MAX_TOTAL_BYTES) throw new E2bError(400, `The metadata is larger than ${MAX_TOTAL_BYTES} bytes.`);
  return { prefix: METADATA_PREFIX, values };
}
