import { execFileSync, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { makeCertificate } from "../certificates.ts";
import { NameServer } from "../name-server.ts";
import { deployPrograms, whyNoDeployPrograms } from "./deploy-programs.ts";
import { startService, untilReady, type ServiceProcess } from "./service-process.ts";

const NAME = "sandboxes.test";
const NAMES_PORT = 53;
/** Starts a program with another `/etc/resolv.conf`, which nobody else sees. */
const WITH_NAMES = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"'] as const;

/** A domain with a wildcard name, and Debian's Caddy with its certificate in front of a server. */
export interface TestDomain {
  /** `NAME:PORT`. */
  readonly domain: string;
  /** Starts a program that resolves the names of the domain: the beginning of its argv. */
  readonly withNames: readonly string[];
  /** Where programs find the authority of the certificate. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts Caddy in front of the server with this address. */
  readonly passTo: (serverUrl: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Undefined: {@link openTestDomain} works here. */
export function whyNoTestDomain(): string | undefined {
  const argv = [...WITH_NAMES.slice(1), "/etc/resolv.conf", "true"];
  const missing = whyNoDeployPrograms();
  if (missing !== undefined) return missing;
  return spawnSync(WITH_NAMES[0], argv).status === 0 ? undefined : "A program cannot get a nameserver of its own here.";
}

/** Keeps its files in `folder`. */
export async function openTestDomain(folder: string): Promise<TestDomain> {
  const port = await freePort();
  // Loopback has many addresses, and several runs of tests on a machine need this port.
  const nameserver = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`;
  const names = new NameServer((name) => (name.endsWith(`.${NAME}`) ? "127.0.0.1" : undefined));
  await names.open(NAMES_PORT, nameserver);
  const resolver = join(folder, "resolv.conf");
  await writeFile(resolver, `nameserver ${nameserver}\n`);
  const { authority, certificate, key } = await makeSigned(folder);
  const domain = `${NAME}:${port}`;
  let caddy: ServiceProcess | undefined;
  return {
    domain,
    withNames: [...WITH_NAMES, resolver],
    env: { NODE_EXTRA_CA_CERTS: authority, SSL_CERT_FILE: authority },
    passTo: async (serverUrl) => {
      const config = join(folder, "Caddyfile");
      await writeFile(
        config,
        `{\n admin off\n auto_https off\n}\nhttps://*.${domain} {\n bind 127.0.0.1\n tls ${certificate} ${key}\n reverse_proxy ${new URL(serverUrl).host}\n}\n`,
      );
      const run = [deployPrograms.caddy, "run", "--adapter", "caddyfile", "--config", config];
      caddy = startService(run, { env: { HOME: folder }, cleanUp: "" });
      await untilReady(caddy, () => listens(port), "Caddy");
    },
    close: async () => {
      names.close();
      await caddy?.stop();
    },
  };
}

/** A certificate that is not its own authority, as a user's would not be: the Python package refuses such a one. */
async function makeSigned(folder: string): Promise<{ authority: string; certificate: string; key: string }> {
  const own = join(folder, "authority");
  await mkdir(own);
  const { certFile: authority, keyFile } = await makeCertificate({ folder: own });
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const named = ["-subj", `/CN=${NAME}`, "-addext", `subjectAltName=DNS:${NAME},DNS:*.${NAME}`];
  const signed = ["-CA", authority, "-CAkey", keyFile, "-addext", "basicConstraints=critical,CA:false"];
  const argv = ["req", "-x509", ...made, ...named, ...signed, "-keyout", key, "-out", certificate];
  execFileSync("openssl", argv, { stdio: "ignore" });
  return { authority, certificate, key };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}
