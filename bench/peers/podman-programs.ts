import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { KEYRING, privateAptOptions, readDebianMirror } from "../../packages/server/src/setup/engine/debian-package.ts";
import type { Lab } from "../lab.ts";
import { SERVERS_FOLDER } from "../../test/kit/store-servers/test-server.ts";

const run = promisify(execFile);
const SUITE = "bookworm";

/** podman, CRIU, and the libraries that a small machine lacks. The runtime is the runc that Docker has, too. */
const PACKAGES = [
  "podman",
  "conmon",
  "criu",
  "golang-github-containers-common",
  "golang-github-containers-image",
  "libgpgme11",
  "libassuan0",
  "libprotobuf-c1",
  "libnet1",
  "libnl-3-200",
  "libseccomp2",
  "libsubid4",
  "libdevmapper1.02.1",
];
const FOLDER = join(SERVERS_FOLDER, "podman-1");
const LIBRARIES = process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
const LIMIT_MS = 3 * 60_000;

export interface PodmanPrograms {
  readonly podman: string;
  readonly conmon: string;
  readonly criu: string;
  /** Has a `criu` for callers without the variables of `env`. */
  readonly criuFolder: string;
  readonly env: Readonly<Record<"PATH" | "LD_LIBRARY_PATH", string>>;
}

/**
 * Debian's packages, unpacked in the cache: nothing is installed. Needs the network the first time. Throws the reason
 * on failure.
 */
export async function preparePodman({ progress, scratch }: Lab): Promise<PodmanPrograms> {
  if (!existsSync(FOLDER)) {
    progress("Getting podman from Debian");
    await fetchInto(FOLDER);
  }
  const at = (path: string): string => join(FOLDER, path);
  const libraries = `${at(`usr/lib/${LIBRARIES}`)}:${at(`lib/${LIBRARIES}`)}`;
  const criuFolder = join(scratch, "criu");
  await mkdir(criuFolder, { recursive: true });
  const script = `#!/bin/sh\nLD_LIBRARY_PATH=${libraries} exec ${at("usr/sbin/criu")} "$@"\n`;
  await writeFile(join(criuFolder, "criu"), script, { mode: 0o755 });
  return {
    podman: at("usr/bin/podman"),
    conmon: at("usr/bin/conmon"),
    criu: at("usr/sbin/criu"),
    criuFolder,
    env: {
      PATH: `${at("usr/bin")}:${at("usr/sbin")}:/usr/sbin:/usr/bin:/sbin:/bin`,
      LD_LIBRARY_PATH: libraries,
    },
  };
}

async function fetchInto(folder: string): Promise<void> {
  const mirror = await readDebianMirror("/etc/apt");
  if (mirror === undefined) throw new Error("apt's sources name no Debian mirror");
  await mkdir(SERVERS_FOLDER, { recursive: true });
  const scratch = await mkdtemp(join(SERVERS_FOLDER, "fetching-"));
  try {
    const options = { signal: AbortSignal.timeout(LIMIT_MS), cwd: scratch };
    const place = { uri: mirror.uri, keyring: mirror.keyring ?? KEYRING, suite: SUITE };
    const apt = ["-qq", ...(await privateAptOptions(scratch, place))];
    await run("apt-get", [...apt, "update"], options);
    await run("apt-get", [...apt, "download", ...PACKAGES], options);
    const packages = (await readdir(scratch)).filter((name) => name.endsWith(".deb"));
    for (const name of packages) await run("dpkg-deb", ["-x", name, "unpacked"], options);
    await rename(join(scratch, "unpacked"), folder);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** CRIU's own check of this kernel. */
export async function whyNoCriu({ criu, env }: PodmanPrograms): Promise<string> {
  const options = { env: { ...process.env, ...env }, timeout: LIMIT_MS };
  try {
    await run(criu, ["check"], options);
    return "CRIU supports this kernel.";
  } catch (error) {
    const version = await run(criu, ["--version"], options).then(
      ({ stdout }) => /Version: (\S+)/.exec(stdout)?.[1] ?? "",
      () => "",
    );
    const [first = lastLine(error)] = /^Error.*$/m.exec(String((error as { stderr?: unknown }).stderr)) ?? [];
    return `CRIU ${version} does not support this kernel: ${first}`;
  }
}

/** From the output of a failed program. */
export function lastLine(error: unknown): string {
  const text = String((error as { stderr?: unknown }).stderr ?? error);
  return text.trim().split("\n").at(-1) ?? "";
}
