import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { SandboxerError } from "@sandboxer/protocol";
import type { Logger } from "pino";
import type { PeerTls } from "../manager/ownership/peers.ts";
import type { Credentials, SecureServerOptions } from "../gateway/tls/secure-server.ts";
import type { ServerConfig } from "./config.ts";

type TlsConfig = Pick<ServerConfig, "tlsCert" | "tlsKey" | "peerCa"> & Partial<Pick<ServerConfig, "requirePeerCert">>;

/** Files are read instead of watched: mounted secrets are replaced by links to new folders. */
const LOOK_EVERY_MS = 2_000;

/** The files of TLS, as they are now. */
export interface Tls {
  /** Undefined: the server speaks plain HTTP. */
  readonly server: SecureServerOptions | undefined;
  /** For calls to other servers, which get this server's certificate if they ask; undefined: Node's authorities. */
  readonly peerTls: () => PeerTls | undefined;
  /** When the certificate expires, in milliseconds since 1970. */
  readonly expiresAtMs: () => number | undefined;
  /** Why clients that verify certificates refuse this server at a URL; undefined: they accept its name. */
  nameProblem(url: string): string | undefined;
  close(): void;
}

/** Reads the files of TLS and checks them, and again whenever they change. Files that do not fit are refused by name. */
export async function openTls(config: TlsConfig, log: Pick<Logger, "info" | "error">): Promise<Tls> {
  const { tlsCert, tlsKey } = config;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    const [given, missing] = tlsCert === undefined ? ["--tls-key", "--tls-cert"] : ["--tls-cert", "--tls-key"];
    throw new SandboxerError("bad_request", `${given} needs ${missing}.`, {
      hint: "Set both to serve HTTPS, or neither to serve HTTP.",
    });
  }
  if (config.requirePeerCert === true && (tlsCert === undefined || config.peerCa === undefined)) {
    throw new SandboxerError("bad_request", "--require-peer-cert needs --tls-cert and --peer-ca.", {
      hint: "Set both: servers show the certificate of --tls-cert to each other, and --peer-ca decides which ones are accepted.",
    });
  }
  let current = await readFiles(config);
  let refused: string | undefined;
  const listeners: ((renewed: Credentials) => void)[] = [];
  const look = async (): Promise<void> => {
    try {
      const read = await readFiles(config);
      refused = undefined;
      if (read.text === current.text) return;
      if (read.credentials !== undefined) for (const listener of listeners) listener(read.credentials);
      current = read;
      log.info({ expires: read.certificate?.validToDate.toISOString() }, "TLS files read again");
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== refused) log.error(`The TLS files cannot be used, so those read before stay in use: ${message}`);
      refused = message;
    }
  };
  const hasFiles = current.text !== "";
  const timer = hasFiles ? setInterval(() => void look(), LOOK_EVERY_MS).unref() : undefined;
  const { credentials } = current;
  const onRenewed: SecureServerOptions["onRenewed"] = (listener) => {
    listeners.push(listener);
    // Between the first read and the start of the server an engine may be built.
    if (current.credentials !== undefined && current.credentials !== credentials) listener(current.credentials);
  };
  return {
    server: credentials === undefined ? undefined : { credentials, onRenewed },
    peerTls: () => (current.peerCa === undefined ? undefined : { ca: current.peerCa, ...ownCredentials(current) }),
    expiresAtMs: () => current.certificate?.validToDate.getTime(),
    nameProblem: (url) => nameProblem(current.certificate, url),
    close: () => clearInterval(timer),
  };
}

function ownCredentials({ credentials }: TlsFiles): Pick<PeerTls, "cert" | "key"> {
  return credentials === undefined ? {} : { cert: credentials.cert, key: credentials.key };
}

interface TlsFiles {
  readonly credentials: Credentials | undefined;
  readonly certificate: X509Certificate | undefined;
  readonly peerCa: string | undefined;
  /** Everything that was read, to compare. */
  readonly text: string;
}

async function readFiles({ tlsCert, tlsKey, peerCa: peerCaFile, requirePeerCert }: TlsConfig): Promise<TlsFiles> {
  const peerCa = peerCaFile === undefined ? undefined : await readPem("--peer-ca", peerCaFile);
  if (peerCa !== undefined) certificatesIn("--peer-ca", peerCaFile ?? "", peerCa);
  if (tlsCert === undefined || tlsKey === undefined)
    return { credentials: undefined, certificate: undefined, peerCa, text: peerCa ?? "" };
  const [cert, key] = [await readPem("--tls-cert", tlsCert), await readPem("--tls-key", tlsKey)];
  const certificate = checkedPair({ cert, key }, tlsCert, tlsKey);
  const clientCa = requirePeerCert === true ? peerCa : undefined;
  return { credentials: { cert, key, clientCa }, certificate, peerCa, text: [cert, key, peerCa].join("\n") };
}

async function readPem(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    throw refusal(
      `${flag}: ${file} cannot be read (${code}).`,
      "Check the path, and that the server's user may read it.",
    );
  }
}

/** The first certificate, which is the server's own. */
function checkedPair({ cert, key }: Credentials, certFile: string, keyFile: string): X509Certificate {
  const certificate = certificatesIn("--tls-cert", certFile, cert);
  if (!certificate.checkPrivateKey(privateKey(keyFile, key)))
    throw refusal(
      `--tls-key: ${keyFile} is not the key of the certificate in ${certFile}.`,
      "The server's own certificate must be the first in its file. Compare both with `openssl pkey -pubout` and `openssl x509 -pubkey`.",
    );
  const { validFromDate, validToDate } = certificate;
  if (validToDate.getTime() <= Date.now())
    throw refusal(`--tls-cert: the certificate in ${certFile} expired at ${validToDate.toISOString()}.`, RENEW);
  if (validFromDate.getTime() > Date.now())
    throw refusal(
      `--tls-cert: the certificate in ${certFile} is not valid before ${validFromDate.toISOString()}.`,
      "Check the clock of this machine.",
    );
  return certificate;
}

const RENEW = "Renew the certificate. A running server reads changed files by itself.";

function certificatesIn(flag: string, file: string, pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw refusal(
      `${flag}: ${file} contains no certificate in PEM.`,
      'It must begin with "-----BEGIN CERTIFICATE-----".',
    );
  }
}

function privateKey(file: string, pem: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch {
    const isEncrypted = /^-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(pem);
    const hint = isEncrypted
      ? "Decrypt it with `openssl pkey -in FILE -out NEW_FILE`, and let only the server's user read the new file."
      : 'It must begin with "-----BEGIN PRIVATE KEY-----".';
    throw refusal(`--tls-key: ${file} ${isEncrypted ? "needs a passphrase" : "contains no private key in PEM"}.`, hint);
  }
}

function refusal(message: string, hint: string): SandboxerError {
  return new SandboxerError("bad_request", message, { hint });
}

function nameProblem(certificate: X509Certificate | undefined, url: string): string | undefined {
  const { protocol, hostname } = new URL(url);
  if (certificate === undefined || protocol !== "https:") return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const named = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  return named === undefined ? `its certificate does not name ${host}` : undefined;
}
