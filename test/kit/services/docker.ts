import { execFile } from "node:child_process";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { debianPrograms } from "./debian-programs.ts";
import { startService, untilReady } from "./service-process.ts";

const run = promisify(execFile);

/** A Docker engine of its own, with nothing in it, apart from any that this machine may have. */
export interface DockerEngine {
  /** `unix:///…`, as `DOCKER_HOST` takes it. */
  readonly host: string;
  readonly socketPath: string;
  /** The environment in which a process finds docker, its compose plugin and this engine. */
  readonly env: Readonly<Record<"PATH" | "DOCKER_HOST" | "DOCKER_CONFIG", string>>;
  /** Runs `docker ARGS…` and returns its output. */
  docker(...args: readonly string[]): Promise<string>;
  /** Makes an image of a folder. */
  importImage(name: string, rootFolder: string): Promise<void>;
  /** Ends the engine and every container, and removes all of it. */
  stop(): Promise<void>;
}

/**
 * Starts one; needs root and `debianPrograms`. It changes no firewall rule and makes no default network. Programs that
 * its runtimes call are looked for in `moreFolders` too.
 */
export async function startDocker(
  moreArguments: readonly string[] = [],
  moreFolders: readonly string[] = [],
): Promise<DockerEngine> {
  const folder = await mkdtemp(join(tmpdir(), "sbx-docker-"));
  const socketPath = join(folder, "docker.sock");
  const host = `unix://${socketPath}`;
  const configFolder = join(folder, "config");
  const path = [debianPrograms.bin, ...moreFolders, "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":");
  const env = { PATH: path, DOCKER_HOST: host, DOCKER_CONFIG: configFolder };
  const argv = (storageDriver: string): string[] => [
    join(debianPrograms.bin, "dockerd"),
    `--host=${host}`,
    `--data-root=${join(folder, "data")}`,
    `--exec-root=${join(folder, "exec")}`,
    `--pidfile=${join(folder, "pid")}`,
    `--storage-driver=${storageDriver}`,
    "--bridge=none",
    "--iptables=false",
    "--ip6tables=false",
    "--ip-forward=false",
    "--shutdown-timeout=1",
    "--log-level=warn",
    ...moreArguments,
  ];
  const docker = async (...args: readonly string[]): Promise<string> => {
    const { stdout } = await run(join(debianPrograms.bin, "docker"), args, { env: { ...process.env, ...env } });
    return stdout;
  };
  const answers = (): Promise<boolean> =>
    docker("version").then(
      () => true,
      () => false,
    );
  const start = async (storageDriver: string) => {
    await mkdir(configFolder, { recursive: true });
    const config = { cliPluginsExtraDirs: [debianPrograms.plugins] };
    await writeFile(join(configFolder, "config.json"), JSON.stringify(config));
    const service = startService(argv(storageDriver), { env: { PATH: path }, cleanUp: cleanUpScript(folder) });
    await untilReady(service, answers, `dockerd with ${storageDriver}`);
    return service;
  };
  // overlay2 does not work on every file system.
  const service = await start("overlay2").catch(() => start("vfs"));
  return {
    host,
    socketPath,
    env,
    docker,
    importImage: async (name, rootFolder) => {
      const script = `tar -C "$1" -c . | docker import - "$2"`;
      await run("sh", ["-c", script, "sh", rootFolder, name], { env: { ...process.env, ...env } });
    },
    stop: async () => {
      const ids = (await docker("ps", "-aq").catch(() => "")).split("\n").filter((id) => id !== "");
      if (ids.length > 0) await docker("rm", "-f", "-v", ...ids).catch(() => "");
      const networks = (await docker("network", "ls", "-q", "--filter", "type=custom").catch(() => "")).split("\n");
      for (const id of networks.filter((name) => name !== "")) await docker("network", "rm", id).catch(() => "");
      await service.stop();
    },
  };
}

/** Ends containers that a killed engine left, then its mounts, then the folder. */
function cleanUpScript(folder: string): string {
  return `
grep -l -a -F -e "${folder}/exec" /proc/[0-9]*/cmdline 2> /dev/null | while read -r found; do
  process=\${found%/cmdline}
  if tr '\\0' ' ' < "$found" 2> /dev/null | grep -q -e "^[^ ]*containerd.* ${folder}/exec"; then
    kill -KILL "\${process#/proc/}" 2> /dev/null
  fi
done
awk '{ print $2 }' /proc/mounts | grep -e "^${folder}/" | sort -r | while read -r mounted; do umount -l "$mounted"; done
rm -rf -- "${folder}"
`;
}
