/**
 * `npm run test:oldest-node`: runs the tests of the packed packages on the oldest Nodes that their package.json allows. It
 * is no part of `npm test`, because it fetches two Nodes (100 MB) from the registry.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { PUBLIC_PACKAGES, ROOT } from "./packages/public-package.ts";

const NODE_PACKAGE = `node-${process.platform}-${process.arch}`;

const env = {
  ...process.env,
  SANDBOXER_TEST_SDK_NODE: fetchNode(oldestFor("client")),
  SANDBOXER_TEST_CLI_NODE: fetchNode(oldestFor("cli")),
};
const vitest = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--project", "servers"];
const { status } = spawnSync(process.execPath, [...vitest, "packages/cli/test/packages.server.test.ts"], {
  cwd: ROOT,
  stdio: "inherit",
  env,
});
process.exitCode = status ?? 1;

/** `>=22` allows 22.0.0. */
function oldestFor(folder: string): string {
  const found = PUBLIC_PACKAGES.find((each) => each.folder === folder);
  const { node = "" } = (found?.manifest["engines"] ?? {}) as { node?: string };
  const [major = "", minor = "0", patch = "0"] = node.replace(">=", "").split(".");
  return `${major}.${minor}.${patch}`;
}

function fetchNode(version: string): string {
  const folder = join(ROOT, "node_modules/.cache/sandboxer/nodes", version);
  const program = join(folder, "package/bin/node");
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  process.stderr.write(`Fetching ${NODE_PACKAGE}@${version} …\n`);
  const packed = execFileSync("npm", ["pack", "--json", `${NODE_PACKAGE}@${version}`], {
    cwd: folder,
    encoding: "utf8",
  });
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  execFileSync("tar", ["-xf", filename], { cwd: folder });
  return program;
}
