import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

test("the model of the lease was checked since it was changed: npm run test:long -- --log long", () => {
  const model = readFileSync(join(ROOT, "packages/server/test/lease/model/lease.pml"));
  const page = readFileSync(join(ROOT, "docs/reference/long-runs.md"), "utf8");
  expect(page).toContain(`\n\`${createHash("sha256").update(model).digest("hex")}\`\n`);
});
