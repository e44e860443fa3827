import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { errorTable } from "../error-table.ts";

test("docs/reference/errors.md is the error table", async () => {
  expect(await readFile(new URL("../../docs/reference/errors.md", import.meta.url), "utf8")).toBe(errorTable());
});
