import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { createConnection, createServer } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { debianPrograms } from "./debian-programs.ts";
import { startService, untilReady } from "./service-process.ts";

const run = promisify(execFile);

/**
 * sshd needs a user `sshd` and a folder in /run; a mount namespace of its own has both, and root there has another
 * home, so that nothing of the system is changed or used.
 */
const IN_NAMESPACE = `set -e
sed -e "s#^root:.*#root:x:0:0:root:$1/home:/bin/sh#" -e '/^sshd:/d' /etc/passwd > "$1/passwd"
echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >> "$1/passwd"
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs tmpfs /run
mkdir -m 755 /run/sshd
shift
exec "$@"
`;

/** A real sshd on the loopback with keys of its own; its "host" is this machine. */
export interface SshServer {
  readonly port: number;
  /** The placement of sandboxes on this host. */
  readonly placement: Readonly<Record<"host" | "user" | "port" | "identity_file" | "known_hosts_file", string>>;
  /** Cuts every connection at once, like a cable; new ones are accepted. */
  cut(): Promise<void>;
  stop(): Promise<void>;
}

/** Commands over this ssh have the given environment, and nothing of this process's. */
export async function startSshServer(environment: Readonly<Record<string, string>>): Promise<SshServer> {
  const folder = await mkdtemp(join(tmpdir(), "sbx-sshd-"));
  await mkdir(join(folder, "home"));
  for (const name of ["host_key", "user_key"]) {
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, name)]);
  }
  const port = await freePort();
  const [type, key] = (await readFile(join(folder, "host_key.pub"), "utf8")).split(" ");
  await writeFile(join(folder, "known_hosts"), `[127.0.0.1]:${port} ${type} ${key}\n`);
  await writeFile(join(folder, "authorized_keys"), await readFile(join(folder, "user_key.pub")));
  await writeFile(join(folder, "sshd_config"), configuration(folder, port, environment));
  const sshd = [join(debianPrograms.bin, "sshd"), "-D", "-e", "-f", join(folder, "sshd_config")];
  const argv = ["unshare", "-m", "sh", "-c", IN_NAMESPACE, "sh", folder, ...sshd];
  const service = startService(argv, {
    env: { LD_LIBRARY_PATH: debianPrograms.lib },
    cleanUp: `rm -rf -- "${folder}"`,
  });
  await untilReady(service, () => accepts(port), "sshd");
  return {
    port,
    placement: {
      host: "127.0.0.1",
      user: "root",
      port: String(port),
      identity_file: join(folder, "user_key"),
      known_hosts_file: join(folder, "known_hosts"),
    },
    cut: async () => {
      const listener = Number(await readFile(join(folder, "pid"), "utf8"));
      for (const pid of await childrenOf(listener)) process.kill(pid, "SIGKILL");
    },
    stop: () => service.stop(),
  };
}

function configuration(folder: string, port: number, environment: Readonly<Record<string, string>>): string {
  return [
    `Port ${port}`,
    "ListenAddress 127.0.0.1",
    `HostKey ${folder}/host_key`,
    `PidFile ${folder}/pid`,
    `AuthorizedKeysFile ${folder}/authorized_keys`,
    "StrictModes no",
    "UsePAM no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    `SetEnv ${Object.entries(environment)
      .map(([name, value]) => `"${name}=${value}"`)
      .join(" ")}`,
    "",
  ].join("\n");
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const children: number[] = [];
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    if (Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === parent) children.push(Number(pid));
  }
  return children;
}

async function accepts(port: number): Promise<boolean> {
  const socket = createConnection(port, "127.0.0.1");
  try {
    await once(socket, "data");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
