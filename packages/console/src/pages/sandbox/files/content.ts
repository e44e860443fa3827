/** How much of a text is shown. */
export const TEXT_BYTES = 1 << 20;
/** An image is shown completely, or not at all. */
export const IMAGE_BYTES = 16 << 20;

export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

export type Content =
  | { readonly kind: "text"; readonly text: string; readonly whole: boolean }
  | { readonly kind: "image"; readonly type: ImageType; readonly bytes: Uint8Array<ArrayBuffer> | undefined }
  | { readonly kind: "binary" };

/** Only types that browsers draw without running code. */
export function imageType(bytes: Uint8Array): ImageType | undefined {
  const letters = String.fromCodePoint(...bytes.subarray(0, 12));
  if (letters.startsWith("\u0089PNG\r\n\u001A\n")) return "image/png";
  if (letters.startsWith("\u00FF\u00D8\u00FF")) return "image/jpeg";
  if (letters.startsWith("GIF87a") || letters.startsWith("GIF89a")) return "image/gif";
  if (letters.startsWith("RIFF") && letters.slice(8) === "WEBP") return "image/webp";
  return undefined;
}

/** Undefined if it is not UTF-8, or contains control bytes. The last character may be cut if the text is truncated. */
export function textOf(bytes: Uint8Array, whole: boolean): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !whole });
  } catch {
    return undefined;
  }
}

/** A text field supports only one kind of line break. */
export function lineEnds(text: string): "lf" | "crlf" | "mixed" {
  if (!text.includes("\r")) return "lf";
  return /(?<!\r)\n|\r(?!\n)/.test(text) ? "mixed" : "crlf";
}

/** Characters that can make a text look like another one. */
export function turnsAround(text: string): boolean {
  return /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/.test(text);
}

export const HEX_PAGE_BYTES = 4096;

export interface HexLine {
  readonly offset: string;
  readonly bytes: string;
  readonly letters: string;
}

export function hexLines(bytes: Uint8Array, offset: number): readonly HexLine[] {
  return Array.from({ length: Math.ceil(bytes.length / 16) }, (_, line) => {
    const part = [...bytes.subarray(line * 16, line * 16 + 16)];
    return {
      offset: (offset + line * 16).toString(16).padStart(8, "0"),
      bytes: part.map((byte) => byte.toString(16).padStart(2, "0")).join(" "),
      letters: part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCodePoint(byte) : "·")).join(""),
    };
  });
}
