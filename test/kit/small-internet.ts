import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { SERVERS_FOLDER } from "./store-servers/test-server.ts";
import { NameServer } from "./name-server.ts";

const run = promisify(execFile);

const WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("hello_sbx.py", "print('hello from the wheel')\\n")
    wheel.writestr("hello_sbx-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: hello-sbx\\nVersion: 1.0\\n")
    wheel.writestr("hello_sbx-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("hello_sbx-1.0.dist-info/RECORD", "")
`;

/**
 * A package index, a npm registry, a git repository, a Debian mirror and web pages at an address of this machine, under
 * names that end in `.test`, which its own nameserver knows.
 */
export class SmallInternet {
  readonly names = new NameServer((name) => (name.endsWith(".test") ? this.#address : undefined));
  readonly #address: string;
  readonly #folder: string;
  readonly #files = new Map<string, Buffer>();
  #plain: Server | undefined;
  #secure: Server | undefined;

  constructor(folder: string, address = "127.0.0.1") {
    this.#folder = folder;
    this.#address = address;
  }

  get port(): number {
    return portOf(this.#plain);
  }

  get securePort(): number {
    return portOf(this.#secure);
  }

  /** The certificate of `https://web.test`. */
  get certificate(): Promise<string> {
    return readFile(join(this.#folder, "cert.pem"), "utf8");
  }

  async open(): Promise<void> {
    await this.names.open();
    await mkdir(this.#folder, { recursive: true });
    await Promise.all([this.#makeWheel(), this.#makePackage(), this.#makeRepository(), this.#makeCertificate()]);
    this.#files.set("apt.test/Packages", Buffer.from("Package: hello-sbx\nVersion: 1.0\nArchitecture: all\n\n"));
    this.#files.set("web.test/", Buffer.from("hello from the web\n"));
    const serve = (request: IncomingMessage, response: ServerResponse): void => this.#serve(request, response);
    const [key, cert] = await Promise.all([readFile(join(this.#folder, "key.pem")), this.certificate]);
    this.#plain = createServer(serve).listen(0, this.#address);
    this.#secure = createSecureServer({ key, cert }, serve).listen(0, this.#address);
    await Promise.all([once(this.#plain, "listening"), once(this.#secure, "listening")]);
  }

  close(): void {
    this.names.close();
    for (const server of [this.#plain, this.#secure]) {
      server?.close();
      server?.closeAllConnections();
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const host = (request.headers.host ?? "").split(":")[0] ?? "";
    // apt asks for /./Packages.
    const path = decodeURIComponent(new URL(request.url ?? "", "http://x").pathname);
    const found = this.#files.get(host + path) ?? this.#dynamic(host + path);
    response.statusCode = found === undefined ? 404 : 200;
    if (path.endsWith("/")) response.setHeader("content-type", "text/html");
    response.end(request.method === "HEAD" ? undefined : (found ?? "not found\n"));
  }

  /** Fetches packages and all that they need, once for this machine, and offers them in the package index. */
  async offerWheels(requirement: string): Promise<void> {
    const folder = join(SERVERS_FOLDER, `wheels-${requirement}`);
    if (!existsSync(folder)) {
      const scratch = `${folder}.${process.pid}`;
      await run("/usr/bin/python3", ["-m", "pip", "download", "--quiet", "--dest", scratch, requirement]);
      await rename(scratch, folder);
    }
    for (const file of await readdir(folder)) {
      this.#files.set(`pypi.test/${file}`, await readFile(join(folder, file)));
      const project = (file.split("-", 1)[0] ?? "").toLowerCase().replaceAll("_", "-");
      this.#files.set(`pypi.test/simple/${project}/`, Buffer.from(`<a href="/${file}">${file}</a>`));
    }
  }

  /** Documents with URLs of this server in them. */
  #dynamic(path: string): string | undefined {
    if (path === "pypi.test/simple/hello-sbx/") return `<a href="/hello_sbx-1.0-py3-none-any.whl">hello</a>`;
    if (path !== "npm.test/hello-sbx") return undefined;
    const tarball = this.#files.get("npm.test/hello-sbx-1.0.0.tgz") ?? Buffer.alloc(0);
    const dist = {
      tarball: `http://npm.test:${this.port}/hello-sbx-1.0.0.tgz`,
      shasum: createHash("sha1").update(tarball).digest("hex"),
    };
    const version = { name: "hello-sbx", version: "1.0.0", main: "index.js", dist };
    return JSON.stringify({ name: "hello-sbx", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } });
  }

  async #makeWheel(): Promise<void> {
    const path = join(this.#folder, "hello_sbx-1.0-py3-none-any.whl");
    await run("/usr/bin/python3", ["-c", WHEEL, path]);
    this.#files.set("pypi.test/hello_sbx-1.0-py3-none-any.whl", await readFile(path));
  }

  async #makePackage(): Promise<void> {
    const folder = join(this.#folder, "npm", "package");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "package.json"), JSON.stringify({ name: "hello-sbx", version: "1.0.0" }));
    await writeFile(join(folder, "index.js"), "module.exports = 'hello from npm';\n");
    const tarball = join(this.#folder, "hello-sbx-1.0.0.tgz");
    await run("tar", ["-czf", tarball, "-C", join(this.#folder, "npm"), "package"]);
    this.#files.set("npm.test/hello-sbx-1.0.0.tgz", await readFile(tarball));
  }

  /** As plain files, which git reads without a program on the other side. */
  async #makeRepository(): Promise<void> {
    const [work, bare] = [join(this.#folder, "work"), join(this.#folder, "repo.git")];
    const who = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
    await run("git", ["init", "-q", "-b", "main", work]);
    await writeFile(join(work, "hello.txt"), "hello from git\n");
    await run("git", ["-C", work, "add", "."]);
    await run("git", ["-C", work, ...who, "commit", "-q", "-m", "first"]);
    await run("git", ["clone", "-q", "--bare", work, bare]);
    await run("git", ["-C", bare, "update-server-info"]);
    const { stdout } = await run("find", [bare, "-type", "f", "-printf", "%P\n"]);
    for (const file of stdout.trim().split("\n"))
      this.#files.set(`git.test/repo.git/${file}`, await readFile(join(bare, file)));
  }

  async #makeCertificate(): Promise<void> {
    const [key, cert] = [join(this.#folder, "key.pem"), join(this.#folder, "cert.pem")];
    const names = ["-subj", "/CN=web.test", "-addext", "subjectAltName=DNS:web.test"];
    const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    await run("openssl", ["req", "-x509", ...made, "-keyout", key, "-out", cert, ...names]);
  }
}

function portOf(server: Server | undefined): number {
  return (server?.address() as AddressInfo | null | undefined)?.port ?? 0;
}
