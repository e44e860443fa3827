/**
 * The image of `deploy/Dockerfile`, without a registry: debootstrap makes its base from the machine's own package sources, once,
 * in the cache.
 */
import { existsSync } from "node:fs";
import { cp, mkdtemp, readFile, realpath, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readDebianMirror } from "../../../packages/server/src/setup/engine/debian-package.ts";
import { runProgram } from "../store-servers/run-program.ts";
import { SERVERS_FOLDER } from "../store-servers/test-server.ts";
import { whyNoServices } from "./debian-programs.ts";
import { startLocalRegistry } from "./local-registry.ts";
import { deployPrograms, whyNoDeployPrograms } from "./deploy-programs.ts";
import type { DockerEngine } from "./docker.ts";

const BASE_FOLDER = join(SERVERS_FOLDER, "server-base-1");
const ENGINES = join(dirname(SERVERS_FOLDER), "engines");
const ROOT = join(import.meta.dirname, "../../..");
const LIMIT_MS = 30 * 60_000;

/** Undefined: the image can be built here. */
export function whyNoServerImage(): string | undefined {
  return (
    whyNoServices() ??
    whyNoDeployPrograms() ??
    (existsSync(ENGINES) ? undefined : "There is no engine. Run: sandboxer setup")
  );
}

/** Everything that the Dockerfile would install, so that its build needs only the registry. */
const PACKAGES = ["ca-certificates", "gcc", "libc6-dev", "make", "python3", "iproute2", "nftables", "tini"];

/** Builds the image with the packages of `npm run pack` in `packages`; gives its name. */
export async function buildServerImage(docker: DockerEngine, packages: string): Promise<string> {
  const base = await withEngines(await baseFolder());
  try {
    await docker.importImage("sandboxer-test-base", base);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
  const file = join(ROOT, "deploy/Dockerfile");
  const registry = await startLocalRegistry([]);
  try {
    const values = ["BASE=sandboxer-test-base", `NPM_CONFIG_REGISTRY=${registry.url}`];
    const build = ["build", "--network", "host", ...values.flatMap((value) => ["--build-arg", value]), "--file", file];
    await docker.docker(...build, "--tag", "sandboxer-server", packages);
  } finally {
    registry.close();
  }
  return "sandboxer-server";
}

/** Debian's base system with Node and npm of this machine. */
async function baseFolder(): Promise<string> {
  if (existsSync(BASE_FOLDER)) return BASE_FOLDER;
  const mirror = await readDebianMirror("/etc/apt");
  const suite = /^VERSION_CODENAME="?(\w+)"?$/m.exec(await readFile("/etc/os-release", "utf8"))?.[1];
  if (mirror === undefined || suite === undefined) throw new Error("apt's sources name no Debian mirror.");
  const scratch = await mkdtemp(join(SERVERS_FOLDER, "fetching-"));
  const root = join(scratch, "root");
  try {
    const argv = ["--variant=minbase", `--include=${PACKAGES.join(",")}`, suite, root, mirror.uri];
    const env = { DEBOOTSTRAP_DIR: deployPrograms.debootstrapFolder };
    await runProgram([deployPrograms.debootstrap, ...argv], { signal: AbortSignal.timeout(LIMIT_MS), env });
    await rm(join(root, "var/cache/apt"), { recursive: true, force: true });
    await cp(process.execPath, join(root, "usr/local/bin/node"));
    // `npm` is a link into its package.
    const npm = dirname(dirname(await realpath("/usr/bin/npm")));
    await cp(npm, join(root, "usr/local/lib/node_modules/npm"), { recursive: true });
    await runProgram(["ln", "-s", "../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm")], {
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    await rename(root, BASE_FOLDER);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return BASE_FOLDER;
}

/** A copy with the engines of this machine where a server looks for them. */
async function withEngines(base: string): Promise<string> {
  const copy = await mkdtemp(join(SERVERS_FOLDER, "fetching-"));
  await runProgram(["cp", "-a", "--reflink=auto", `${base}/.`, copy], { signal: AbortSignal.timeout(LIMIT_MS) });
  await cp(ENGINES, join(copy, "var/cache/sandboxer/engines"), { recursive: true });
  return copy;
}
