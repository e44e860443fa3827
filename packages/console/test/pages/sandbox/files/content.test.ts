import type { FileEntry } from "@sandboxer/client";
import { expect, test } from "vitest";
import { hexLines, imageType, lineEnds, textOf } from "../../../../src/pages/sandbox/files/content.ts";
import { modeText, sortEntries } from "../../../../src/pages/sandbox/files/sort-entries.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("UTF-8 is text, with a byte order mark, and cut in the middle of a character", () => {
  expect(textOf(bytes("\uFEFFgrüße"), true)).toBe("\uFEFFgrüße");
  expect(textOf(bytes("ab€").subarray(0, 4), false)).toBe("ab");
  expect(textOf(bytes("ab€").subarray(0, 4), true)).toBeUndefined();
  expect(textOf(Uint8Array.of(0x61, 0), true)).toBeUndefined();
  expect(textOf(Uint8Array.of(0x61, 0xff), true)).toBeUndefined();
});

test("images are recognized by their bytes, and only types that run no code", () => {
  expect(imageType(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0))).toBe("image/png");
  expect(imageType(Uint8Array.of(0xff, 0xd8, 0xff, 0xe0))).toBe("image/jpeg");
  expect(imageType(bytes("GIF89a…"))).toBe("image/gif");
  expect(imageType(bytes("RIFF1234WEBPVP8"))).toBe("image/webp");
  for (const text of ["<svg xmlns=", "RIFF1234WAVE", "GIF", ""]) expect(imageType(bytes(text))).toBeUndefined();
});

test("line ends are distinguished", () => {
  expect(["a", "a\nb", "a\r\nb\r\n", "a\r\nb\n", "a\rb"].map(lineEnds)).toEqual(["lf", "lf", "crlf", "mixed", "mixed"]);
});

test("bytes are shown in lines of sixteen", () => {
  expect(hexLines(bytes("0123456789abcdef\n"), 32)).toEqual([
    { offset: "00000020", bytes: "30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66", letters: "0123456789abcdef" },
    { offset: "00000030", bytes: "0a", letters: "·" },
  ]);
});

test("folders come first in every order; modes look as in ls", () => {
  const entry = (name: string, kind: FileEntry["kind"], sizeBytes: number): FileEntry => ({
    name,
    kind,
    sizeBytes,
    mode: 0o644,
    uid: 0,
    gid: 0,
    modifiedAt: "2026-01-01T00:00:00.000Z",
    linkTarget: null,
  });
  const entries = [entry("b10", "file", 1), entry("b9", "file", 2), entry("z", "folder", 0), entry(".a", "file", 3)];
  const names = (by: "name" | "size", descending: boolean, hidden: boolean): string[] =>
    sortEntries(entries, { by, descending, hidden }).map(({ name }) => name);
  expect(names("name", false, false)).toEqual(["z", "b9", "b10"]);
  expect(names("name", true, true)).toEqual(["z", "b10", "b9", ".a"]);
  expect(names("size", true, true)).toEqual(["z", ".a", "b9", "b10"]);
  expect([0o755, 0o4711, 0o1777, 0o2644].map(modeText)).toEqual(["rwxr-xr-x", "rws--x--x", "rwxrwxrwt", "rw-r-Sr--"]);
});
