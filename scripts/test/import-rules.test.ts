import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
let house: string;

beforeAll(() => {
  house = mkdtempSync(join(tmpdir(), "import-rules-"));
  copyFileSync(join(ROOT, ".oxlintrc.json"), join(house, ".oxlintrc.json"));
});

afterAll(() => rmSync(house, { recursive: true }));

/** Plants one line in a file of an empty house with our rules, and says what the linter thinks of it. */
function lint(file: string, line: string): string {
  const path = join(house, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${line}\n`);
  const oxlint = join(ROOT, "node_modules", "oxlint", "bin", "oxlint");
  const result = spawnSync(process.execPath, [oxlint, "-f", "unix", path], { cwd: house, encoding: "utf8" });
  rmSync(path);
  return result.stdout;
}

const importing = (from: string): string => `import { thing } from "${from}";\nexport const other = thing;`;

describe("a line of code knows its room", () => {
  test.each([
    ["packages/protocol/src/planted.ts", "@sandboxer/server"],
    ["packages/protocol/src/planted.ts", "node:fs"],
    ["packages/client/src/planted.ts", "@sandboxer/server"],
    ["packages/server/src/backends/planted.ts", "../store/store.ts"],
    ["packages/server/src/backends/gvisor/planted.ts", "../../manager/create.ts"],
    ["packages/server/src/store/planted.ts", "../lease/ownership.ts"],
    ["packages/server/src/store/directory/planted.ts", "../../checkpoints/pack.ts"],
    ["packages/server/src/lease/planted.ts", "../store/directory/directory-store.ts"],
    ["packages/server/src/lease/planted.ts", "../backends/backend.ts"],
    ["packages/server/src/checkpoints/planted.ts", "../lease/ownership.ts"],
    ["packages/server/src/checkpoints/planted.ts", "../collection/garbage.ts"],
    ["packages/server/src/collection/planted.ts", "../manager/create.ts"],
    ["packages/server/src/collection/planted.ts", "../store/directory/directory-store.ts"],
    ["packages/server/src/manager/planted.ts", "../collection/garbage.ts"],
    ["packages/server/src/manager/planted.ts", "../backends/gvisor/gvisor-backend.ts"],
    ["packages/server/src/manager/planted.ts", "../gateway/create-socket.ts"],
    ["packages/server/src/gateway/planted.ts", "../backends/backend.ts"],
    ["packages/server/src/gateway/planted.ts", "../main/config.ts"],
    ["packages/server/src/setup/planted.ts", "../manager/create.ts"],
    ["packages/server/src/support/planted.ts", "../store/store.ts"],
    ["packages/server/src/profiles/planted.ts", "../manager/create.ts"],
    ["packages/server/src/profiles/planted.ts", "../secrets/secret.ts"],
    ["packages/server/src/secrets/planted.ts", "../main/config.ts"],
    ["packages/server/src/manager/planted.ts", "../secrets/secret-sources.ts"],
    ["packages/server/src/backends/gvisor/planted.ts", "../../profiles/apply-profile.ts"],
    ["packages/server/src/backends/planted.ts", "../secrets/secret.ts"],
  ])("%s may not import %s", (file, from) => {
    expect(lint(file, importing(from))).toContain("no-restricted-imports");
  });

  test.each([
    ["packages/server/src/backends/gvisor/planted.ts", "../backend.ts"],
    ["packages/server/src/backends/gvisor/planted.ts", "../../support/clock.ts"],
    ["packages/server/src/lease/planted.ts", "../store/store.ts"],
    ["packages/server/src/checkpoints/planted.ts", "../store/store.ts"],
    ["packages/server/src/collection/planted.ts", "../lease/head.ts"],
    ["packages/server/src/manager/planted.ts", "../backends/backend.ts"],
    ["packages/server/src/manager/planted.ts", "../checkpoints/save-image.ts"],
    ["packages/server/src/manager/planted.ts", "../profiles/apply-profile.ts"],
    ["packages/server/src/manager/planted.ts", "../secrets/secret.ts"],
    ["packages/server/src/profiles/planted.ts", "../support/nearest-name.ts"],
    ["packages/server/src/gateway/planted.ts", "../manager/create.ts"],
    ["packages/server/src/main/planted.ts", "../backends/gvisor/gvisor-backend.ts"],
  ])("%s may import %s", (file, from) => {
    expect(lint(file, importing(from))).not.toContain("no-restricted-imports");
  });

  test("only main, the command and scripts read the environment", () => {
    const line = `export const port = process.env["PORT"];`;
    expect(lint("packages/server/src/manager/planted.ts", line)).toContain("no-process-env");
    expect(lint("packages/server/src/setup/planted.ts", line)).toContain("no-process-env");
    expect(lint("packages/server/src/main/planted.ts", line)).not.toContain("no-process-env");
    expect(lint("packages/cli/src/planted.ts", line)).not.toContain("no-process-env");
  });
});
