import { createHash } from "node:crypto";
import {
  chown,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RootFilesystem, RootFilesystemIdentity } from "./root-filesystem.ts";
import { SANDBOX_USER, WORKING_FOLDER } from "../../agent/user-space.ts";

/** Read-only parts of the host that programs need. No home, no keys, nothing of `/var`. */
const TOP_FOLDERS = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/** The files of `/etc` that programs need; each is copied, so that a change on the host does not show inside. */
const ETC = [
  "alternatives",
  "bash.bashrc",
  "debian_version",
  "inputrc",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "locale.alias",
  "localtime",
  "mime.types",
  "nsswitch.conf",
  "os-release",
  "profile",
  "profile.d",
  "protocols",
  "services",
  "ssl/certs/ca-certificates.crt",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
];
/**
 * Programs and libraries that an image's processes have mapped; they are not in the image, so they must be the same.
 */
const IDENTITY_FILES = [
  "/usr/bin/bash",
  "/usr/bin/python3",
  "/usr/bin/node",
  "/lib64/ld-linux-x86-64.so.2",
  "/lib/x86_64-linux-gnu/libc.so.6",
  "/lib/ld-linux-aarch64.so.1",
  "/lib/aarch64-linux-gnu/libc.so.6",
];

const GENERATED: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0:root:/:/usr/sbin/nologin\nuser:x:${SANDBOX_USER.uid}:${SANDBOX_USER.gid}:user:${WORKING_FOLDER}:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`,
  group: `root:x:0:\nuser:x:${SANDBOX_USER.gid}:\nnogroup:x:65534:\n`,
  hosts: "127.0.0.1 localhost\n::1 localhost\n",
  "resolv.conf": "",
  hostname: "sandbox\n",
  "machine-id": "",
};

const LAYOUT_VERSION = 2;
/** gVisor compares the times of open files; those created here are always the same. */
const FIXED_TIME = new Date("2000-01-01T00:00:00Z");

/**
 * A curated read-only view of the host. The skeleton is created once for each identity and shared; `/usr` and the like
 * are mounted from the host.
 */
export async function hostRootFilesystem(cacheDirectory: string): Promise<RootFilesystem> {
  const identity = await hostIdentity();
  const path = join(cacheDirectory, `host-${identity.digest.slice(0, 24)}`);
  const mounts: { source: string; destination: string }[] = [];
  const links: [string, string][] = [];
  for (const folder of TOP_FOLDERS) {
    const info = await lstat(folder).catch(() => undefined);
    if (info?.isSymbolicLink()) links.push([folder, await readlink(folder)]);
    else if (info?.isDirectory()) mounts.push({ source: folder, destination: folder });
  }
  if ((await lstat(path).catch(() => undefined)) === undefined) await makeSkeleton(path, mounts, links);
  return { image: "host", path, mounts, identity };
}

async function makeSkeleton(
  path: string,
  mounts: readonly { destination: string }[],
  links: readonly [string, string][],
): Promise<void> {
  const building = `${path}.${process.pid}.tmp`;
  await rm(building, { recursive: true, force: true });
  const folders = ["dev", "proc", "sys", "tmp", "run", "etc", "home", "mnt", "opt", "srv", "var/tmp", ".sandboxer"];
  for (const folder of [...folders, ...mounts.map((each) => each.destination)]) {
    await mkdir(join(building, folder), { recursive: true });
  }
  for (const [link, target] of links) await symlink(target, join(building, link));
  const pythons = (await readdir("/etc")).filter((name) => /^python3(\.\d+)?$/.test(name));
  for (const name of [...ETC, ...pythons]) {
    const source = join("/etc", name);
    if ((await stat(source).catch(() => undefined)) === undefined) continue;
    const target = join(building, "etc", name);
    await mkdir(dirname(target), { recursive: true });
    await cp(source, target, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
  }
  for (const [name, content] of Object.entries(GENERATED)) {
    await rm(join(building, "etc", name), { force: true });
    await writeFile(join(building, "etc", name), content);
    await utimes(join(building, "etc", name), FIXED_TIME, FIXED_TIME);
  }
  const workspace = join(building, WORKING_FOLDER);
  await mkdir(workspace, { mode: 0o755 });
  await chown(workspace, SANDBOX_USER.uid, SANDBOX_USER.gid);
  // Another server on this machine may have been faster; its skeleton is the same.
  await rename(building, path).catch(async () => rm(building, { recursive: true, force: true }));
}

async function hostIdentity(): Promise<RootFilesystemIdentity> {
  const parts: Record<string, string> = { layout: String(LAYOUT_VERSION) };
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  parts["operating system"] = /^PRETTY_NAME="?(.*?)"?$/m.exec(release)?.[1] ?? "unknown";
  for (const file of IDENTITY_FILES) {
    const real = await realpath(file).catch(() => undefined);
    if (real === undefined) continue;
    const info = await stat(real);
    parts[file] = `${real} of ${info.size} bytes, ${info.mtime.toISOString()}`;
  }
  const digest = createHash("sha256")
    .update(JSON.stringify(Object.entries(parts).toSorted()))
    .digest("hex");
  return { kind: "host", digest, parts };
}
