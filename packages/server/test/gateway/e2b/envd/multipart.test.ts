import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { fileParts } from "../../../../src/gateway/e2b/envd/multipart.ts";

const headers = { "content-type": "multipart/form-data; boundary=b" };
const part = (name: string, content: string, filename?: string): string => {
  const file = filename === undefined ? "" : `; filename="${filename}"`;
  return `--b\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`;
};

async function read(body: Iterable<string> | AsyncIterable<string>): Promise<[string | undefined, string][]> {
  const found: [string | undefined, string][] = [];
  for await (const { filename, content } of fileParts(Readable.from(body, { objectMode: false }), headers)) {
    found.push([filename, Buffer.concat(await Array.fromAsync(content)).toString()]);
  }
  return found;
}

test("parts named file come in their order, with the folders of their names", async () => {
  const form = `${part("file", "one", "a/b.txt")}${part("note", "skipped")}${part("file", "two")}--b--\r\n`;
  expect(await read([form])).toEqual([
    ["a/b.txt", "one"],
    [undefined, "two"],
  ]);
  expect(await read(form)).toEqual([
    ["a/b.txt", "one"],
    [undefined, "two"],
  ]);
});

test("a form that ends inside a part is refused", async () => {
  await expect(read([part("file", "one", "a").slice(0, -4)])).rejects.toThrow("malformed or incomplete");
});

test("an upload of a million parts is refused after the first thousand", async () => {
  let sent = 0;
  // As from a socket: a piece at a time.
  const form = async function* (): AsyncGenerator<string> {
    for (; sent < 1_000_000; sent += 100) {
      yield Array.from({ length: 100 }, (_, index) => part("file", "", `f${sent + index}`)).join("");
      await setImmediate();
    }
    yield "--b--\r\n";
  };
  await expect(read(form())).rejects.toThrow("at most 1000 files");
  expect(sent).toBeLessThan(3000);
});

test("a body without a boundary is refused", async () => {
  const parts = fileParts(Readable.from(["x"]), { "content-type": "multipart/form-data" });
  await expect(parts.next()).rejects.toThrow("boundary");
});
