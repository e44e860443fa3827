import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { generatedPages } from "../reference/pages.ts";

test.for([...(await generatedPages())])(
  "%s is what the code says; `npm run reference` writes it",
  async ([path, text]) => {
    expect(await readFile(new URL(`../../${path}`, import.meta.url), "utf8")).toBe(text);
  },
);
