import { execFile, execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeCertificate } from "../../../../../test/kit/certificates.ts";
import { NameServer } from "../../../../../test/kit/name-server.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { deployPrograms, whyNoDeployPrograms } from "../../../../../test/kit/services/deploy-programs.ts";
import { pythonEnvironment, whyNoPython } from "../../../../../test/kit/services/python-environment.ts";
import { startService, untilReady } from "../../../../../test/kit/services/service-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const KEY = "a-key-of-twenty-characters";
const NAME = "sandboxes.test";
const PROGRAM_MS = 150_000;

const NAMES_PORT = 53;
/** Starts a program with another `/etc/resolv.conf`, which nobody else sees. */
const WITH_NAMES = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"'];

const missing = whyNoDeployPrograms() ?? whyNoPython() ?? whyNoNames();
if (missing !== undefined) console.warn(`The tests of E2B_DOMAIN behind Caddy are skipped: ${missing}`);

function whyNoNames(): string | undefined {
  const argv = [...WITH_NAMES.slice(1), "/etc/resolv.conf", "true"];
  return spawnSync("unshare", argv).status === 0 ? undefined : "A program cannot get a nameserver of its own here.";
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

interface BehindCaddy {
  readonly server: TestServer;
  readonly domain: string;
  readonly env: Record<string, string>;
  /** Its only nameserver knows the names of the domain. */
  readonly resolver: string;
}

/** A server behind Debian's Caddy with a wildcard name; `env` is all that a user sets, and the test's own authority. */
async function startBehindCaddy(): Promise<BehindCaddy> {
  const [folder, port] = [await temporaryFolder(), await freePort()];
  const names = new NameServer((name) => (name.endsWith(`.${NAME}`) ? "127.0.0.1" : undefined));
  await names.open(NAMES_PORT);
  onTestFinished(() => names.close());
  const resolver = join(folder, "resolv.conf");
  await writeFile(resolver, "nameserver 127.0.0.1\n");
  // Not its own authority, as a user's would not be: the Python package refuses such a one.
  const { certFile: authority, keyFile } = await makeCertificate();
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const named = ["-subj", `/CN=${NAME}`, "-addext", `subjectAltName=DNS:${NAME},DNS:*.${NAME}`];
  const signed = ["-CA", authority, "-CAkey", keyFile, "-addext", "basicConstraints=critical,CA:false"];
  const argv = ["req", "-x509", ...made, ...named, ...signed, "-keyout", key, "-out", certificate];
  execFileSync("openssl", argv, { stdio: "ignore" });
  const domain = `${NAME}:${port}`;
  const access = { trustedProxies: ["127.0.0.1"] };
  const server = await startTestServer({ apiKeys: [KEY], previewDomain: `https://${domain}`, access });
  const config = join(folder, "Caddyfile");
  await writeFile(
    config,
    `{\n admin off\n auto_https off\n}\nhttps://*.${domain} {\n bind 127.0.0.1\n tls ${certificate} ${key}\n reverse_proxy ${new URL(server.httpUrl).host}\n}\n`,
  );
  const run = [deployPrograms.caddy, "run", "--adapter", "caddyfile", "--config", config];
  const caddy = startService(run, { env: { HOME: folder }, cleanUp: "" });
  onTestFinished(() => caddy.stop());
  await untilReady(caddy, () => listens(port), "Caddy");
  const env = {
    PATH: process.env["PATH"] ?? "",
    E2B_DOMAIN: domain,
    E2B_API_KEY: KEY,
    NODE_EXTRA_CA_CERTS: authority,
    SSL_CERT_FILE: authority,
  };
  return { server, domain, env, resolver };
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

describe.skipIf(missing !== undefined)("E2B_DOMAIN behind Debian's Caddy", () => {
  test.for([
    ["npm", process.execPath, "domain-program.mjs"],
    ["PyPI, sync", pythonEnvironment.python, "domain_program.py", "sync"],
    ["PyPI, async", pythonEnvironment.python, "domain_program.py", "async"],
  ] as const)("a program with E2B's package of %s needs that and a key, and nothing else", async ([, ...program]) => {
    const { domain, env, resolver } = await startBehindCaddy();
    const [interpreter, file, ...rest] = program;
    const [unshare = "", ...argv] = [...WITH_NAMES, resolver, interpreter, join(import.meta.dirname, file), ...rest];
    const { stdout } = await promisify(execFile)(unshare, argv, { env, timeout: PROGRAM_MS });
    const found = JSON.parse(stdout) as { id: string; host: string; url: string };
    expect(found).toMatchObject({
      stdout: "hello\n",
      background: "got words\n",
      content: "content",
      downloaded: "content",
      isKilled: true,
      listed: 1,
    });
    expect(found.host).toBe(`3000-${found.id}.${domain}`);
    expect(new URL(found.url).host).toBe(`49983-${found.id}.${domain}`);
  });
});
