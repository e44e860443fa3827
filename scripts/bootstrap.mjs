/**
 * Installs the dependencies when they are missing or not those of the lockfile. It runs before `npm start` and
 * `npm test`, on the machine's own Node (18 or newer) and without dependencies, since it is what brings them.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const WAIT_MS = 10 * 60_000;

export async function bootstrap(root = ROOT, say = (line) => process.stderr.write(`${line}\n`)) {
  if (isInstalled(root)) return;
  const release = await takeLock(root, say);
  try {
    if (isInstalled(root)) return;
    say("Installing dependencies (npm ci) …");
    const result = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
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
    writeFileSync(stampPath(root), lockDigest(root));
  } finally {
    release();
  }
}

/** The stamp says which lockfile was installed. Without one, npm's own record is compared, for those who ran npm ci. */
export function isInstalled(root) {
  const digest = lockDigest(root);
  if (readText(stampPath(root)) === digest) return true;
  const record = readText(join(root, "node_modules", ".package-lock.json"));
  if (record === undefined) return false;
  const installed = JSON.parse(record).packages;
  const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const same = Object.entries(wanted).every(([path, entry]) => {
    if (!path.startsWith("node_modules/") && !path.includes("/node_modules/")) return true;
    const present = installed[path];
    // Packages for other systems are left out.
    return present === undefined ? entry.optional === true : present.version === entry.version;
  });
  if (same) writeFileSync(stampPath(root), digest);
  return same;
}

function stampPath(root) {
  return join(root, "node_modules", ".sandboxer-lock-sha256");
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

/** A file with the holder's process id. One whose holder is gone is taken over. */
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
      if (!told) say(`Another process (${holder}) is installing dependencies; waiting for it …`);
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
