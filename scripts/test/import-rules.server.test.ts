import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const MAY_NOT: readonly [room: string, from: string][] = [
  ["packages/protocol/src", "@sandboxer/server"],
  ["packages/protocol/src", "node:fs"],
  ["packages/client/src", "@sandboxer/server"],
  ["packages/mcp/src", "@sandboxer/server"],
  ["packages/server/src/gateway", "@sandboxer/mcp"],
  ["packages/server/src/backends", "../store/store.ts"],
  ["packages/server/src/backends/gvisor", "../../manager/create.ts"],
  ["packages/server/src/store", "../lease/ownership.ts"],
  ["packages/server/src/store/directory", "../../checkpoints/plain-image.ts"],
  ["packages/server/src/lease", "../store/directory/directory-store.ts"],
  ["packages/server/src/lease", "../backends/backend.ts"],
  ["packages/server/src/checkpoints", "../lease/ownership.ts"],
  ["packages/server/src/checkpoints", "../collection/garbage.ts"],
  ["packages/server/src/collection", "../manager/create.ts"],
  ["packages/server/src/collection", "../store/directory/directory-store.ts"],
  ["packages/server/src/manager", "../collection/garbage.ts"],
  ["packages/server/src/manager", "../backends/gvisor/gvisor-backend.ts"],
  ["packages/server/src/manager", "../gateway/create-socket.ts"],
  ["packages/server/src/gateway", "../backends/backend.ts"],
  ["packages/server/src/gateway", "../manager/live-sandbox.ts"],
  ["packages/server/src/gateway/http/handlers", "../../../manager/live-sandbox.ts"],
  ["packages/server/src/gateway/websocket", "../../manager/context.ts"],
  ["packages/server/src/gateway", "../main/config.ts"],
  ["packages/server/src/gateway", "../egress/outside.ts"],
  ["packages/server/src/backends/gvisor", "../../egress/outside.ts"],
  ["packages/server/src/egress", "../manager/create.ts"],
  ["packages/server/src/egress", "../backends/gvisor/gvisor-backend.ts"],
  ["packages/server/src/setup", "../manager/create.ts"],
  ["packages/server/src/support", "../store/store.ts"],
  ["packages/server/src/profiles", "../manager/create.ts"],
  ["packages/server/src/profiles", "../secrets/secret.ts"],
  ["packages/server/src/secrets", "../main/config.ts"],
  ["packages/server/src/manager", "../secrets/secret-sources.ts"],
  ["packages/server/src/backends/gvisor", "../../profiles/apply-profile.ts"],
  ["packages/server/src/backends", "../secrets/secret.ts"],
  ["packages/server/src/images", "../backends/backend.ts"],
  ["packages/server/src/manager", "../seals/sealed-store.ts"],
  ["packages/server/src/collection", "../seals/sealed-store.ts"],
  ["packages/server/src/seals", "../lease/head.ts"],
  ["packages/server/src/seals", "../store/directory/directory-store.ts"],
  ["packages/server/src/store", "../egress/outside.ts"],
  ["packages/server/src/checkpoints", "../images/image-library.ts"],
  ["packages/server/src/gateway", "../images/image-library.ts"],
];

const MAY: readonly [room: string, from: string][] = [
  ["packages/server/src/backends/gvisor", "../backend.ts"],
  ["packages/server/src/backends/gvisor", "../../support/clock.ts"],
  ["packages/server/src/egress", "../backends/backend.ts"],
  ["packages/server/src/manager", "../egress/outside.ts"],
  ["packages/server/src/lease", "../store/store.ts"],
  ["packages/server/src/checkpoints", "../store/store.ts"],
  ["packages/server/src/collection", "../lease/head.ts"],
  ["packages/server/src/manager", "../backends/backend.ts"],
  ["packages/server/src/manager", "../checkpoints/plain-image.ts"],
  ["packages/server/src/manager", "../profiles/apply-profile.ts"],
  ["packages/server/src/manager", "../secrets/secret.ts"],
  ["packages/server/src/profiles", "../support/nearest-name.ts"],
  ["packages/server/src/gateway", "../manager/sandbox.ts"],
  ["packages/server/src/main", "../backends/gvisor/gvisor-backend.ts"],
  ["packages/server/src/main", "../seals/sealed-store.ts"],
  ["packages/server/src/seals", "../store/store.ts"],
  ["packages/server/src/manager", "../images/image-library.ts"],
];

const READS_ENVIRONMENT = `export const port = process.env["PORT"];`;
const MAY_NOT_READ = ["packages/server/src/manager", "packages/server/src/setup"];
const MAY_READ = ["packages/server/src/main", "packages/cli/src"];

/** Two files that import each other's types. */
const CYCLE_ROOM = "packages/server/src/manager";
const CYCLE = ["ring-a", "ring-b"].map((name, index, names) => ({
  name: `${name}.ts`,
  lines: `import type { Thing as Other } from "./${names[1 - index]}.ts";\nexport interface Thing {\n  readonly other: Other;\n}`,
}));

let house: string;
const planted: { room: string; lines: string; name: string }[] = [];
let diagnostics: readonly { readonly code: string; readonly filename: string }[];
let filesSeen: number;

/** Writes the lines, each to a file of its own, in an empty repository with our rules, and runs the linter once. */
beforeAll(() => {
  house = mkdtempSync(join(tmpdir(), "import-rules-"));
  copyFileSync(join(ROOT, ".oxlintrc.json"), join(house, ".oxlintrc.json"));
  for (const [room, from] of [...MAY_NOT, ...MAY]) plant(room, importing(from));
  for (const room of [...MAY_NOT_READ, ...MAY_READ]) plant(room, READS_ENVIRONMENT);
  for (const { name, lines } of CYCLE) plant(CYCLE_ROOM, lines, name);
  const oxlint = join(ROOT, "node_modules", "oxlint", "bin", "oxlint");
  const { stdout } = spawnSync(process.execPath, [oxlint, "-f", "json", "."], { cwd: house, encoding: "utf8" });
  ({ diagnostics, number_of_files: filesSeen } = JSON.parse(stdout) as {
    diagnostics: typeof diagnostics;
    number_of_files: number;
  });
});

afterAll(() => rmSync(house, { recursive: true }));

describe("a file may import only from the rooms that its own room allows", () => {
  test("the linter has checked every line", () => {
    expect(filesSeen).toBe(planted.length);
  });

  test.each(MAY_NOT)("%s may not import %s", (room, from) => {
    expect(saidOf(room, importing(from))).toContain("no-restricted-imports");
  });

  test.each(MAY)("%s may import %s", (room, from) => {
    expect(saidOf(room, importing(from))).not.toContain("no-restricted-imports");
  });

  test.each(CYCLE)("$name may not import a file that imports it, not even for a type", ({ lines }) => {
    expect(saidOf(CYCLE_ROOM, lines)).toContain("no-cycle");
  });

  test("only main, the command and scripts read the environment", () => {
    for (const room of MAY_NOT_READ) expect(saidOf(room, READS_ENVIRONMENT)).toContain("no-process-env");
    for (const room of MAY_READ) expect(saidOf(room, READS_ENVIRONMENT)).not.toContain("no-process-env");
  });
});

function importing(from: string): string {
  return `import { thing } from "${from}";\nexport const other = thing;`;
}

function plant(room: string, lines: string, as = `planted-${planted.length}.ts`): void {
  const name = join(room, as);
  mkdirSync(join(house, room), { recursive: true });
  writeFileSync(join(house, name), `${lines}\n`);
  planted.push({ room, lines, name });
}

/** The rules that the linter reported for the file with these lines. */
function saidOf(room: string, lines: string): string[] {
  const file = planted.find((each) => each.room === room && each.lines === lines);
  if (file === undefined) throw new Error(`Nothing was planted in ${room} that says ${lines}`);
  return diagnostics
    .filter(({ filename }) => filename === file.name)
    .map(({ code }) => /\(([^)]+)\)/.exec(code)?.[1] ?? code);
}
