import { execFile, execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { temporaryFolder } from "./temporary-folder.ts";

const run = promisify(execFile);

/** Whether certificates can be made here; prints the reason if not. */
export function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    console.warn("Tests with TLS are skipped: there is no openssl to make certificates.");
    return false;
  }
}

export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export interface CertificateOptions {
  /** Names and addresses. */
  readonly names?: readonly string[];
  /** As openssl takes it: `20200101000000Z`. */
  readonly notAfter?: string;
  readonly folder?: string;
}

/** A certificate that is its own authority, in files that are removed after the test. */
export async function makeCertificate(options: CertificateOptions = {}): Promise<Certificate> {
  const { names = ["127.0.0.1", "localhost", "*.localhost"], notAfter } = options;
  const folder = options.folder ?? (await temporaryFolder());
  const [keyFile, certFile, configFile] = ["key.pem", "certificate.pem", "openssl.cnf"].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const alternatives = names.map((name) => `${isIP(name) === 0 ? "DNS" : "IP"}:${name}`).join(",");
  const config = [
    "[req]",
    "distinguished_name = name",
    "x509_extensions = extensions",
    "prompt = no",
    "[name]",
    // Authorities with the same name are mistaken for each other.
    `CN = sandboxer test ${randomUUID()}`,
    "[extensions]",
    `subjectAltName = ${alternatives}`,
    "basicConstraints = critical,CA:true",
    "[ca]",
    "default_ca = own",
    "[own]",
    `database = ${join(folder, "index.txt")}`,
    `new_certs_dir = ${folder}`,
    "rand_serial = yes",
    "default_md = sha256",
    "policy = any",
    "x509_extensions = extensions",
    "[any]",
    "commonName = supplied",
  ].join("\n");
  await writeFile(configFile, config);
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-config", configFile];
  if (notAfter === undefined) {
    await run("openssl", ["req", "-x509", ...made, "-days", "1", "-keyout", keyFile, "-out", certFile]);
  } else {
    const requestFile = join(folder, "request.pem");
    await writeFile(join(folder, "index.txt"), "");
    await run("openssl", ["req", ...made, "-keyout", keyFile, "-out", requestFile]);
    const dates = ["-startdate", "20100101000000Z", "-enddate", notAfter];
    const signed = ["ca", "-batch", "-selfsign", "-notext", "-config", configFile, "-keyfile", keyFile, ...dates];
    await run("openssl", [...signed, "-in", requestFile, "-out", certFile]);
  }
  return { cert: await readFile(certFile, "utf8"), key: await readFile(keyFile, "utf8"), certFile, keyFile };
}
