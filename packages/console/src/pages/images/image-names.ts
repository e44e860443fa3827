import type { ImageRecord } from "@sandboxer/client";
import { plainName } from "../sandbox/files/visible-name.ts";

const DIGITS = 12;

/** The first digits of its digest; the server accepts them in place of a name. */
export function shortDigest({ digest }: Pick<ImageRecord, "digest">): string {
  return digest.replace(/^sha256:/, "").slice(0, DIGITS);
}

/** A name of an image, for titles. */
export function imageTitle(image: Pick<ImageRecord, "digest" | "names">): string {
  const [name] = image.names;
  return name === undefined ? shortDigest(image) : plainName(name);
}
