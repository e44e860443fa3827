import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer as createPlainServer, type Server } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { hasOpenssl, makeCertificate } from "../../../../test/kit/certificates.ts";
import { eventually } from "../../../../test/kit/eventually.ts";
import { COMMAND } from "../../../../test/kit/server/command.ts";
import { ServerProcess } from "../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { PeerSecret } from "../../src/gateway/access/peer-secret.ts";
import { httpPeers, ringOver } from "../../src/main/peers.ts";
import { openTls, type Tls } from "../../src/main/tls.ts";

const run = promisify(execFile);
const NOBODY = pino({ level: "silent" });
const ID = "00000000-0000-4000-8000-000000000000";

async function opened(config: Parameters<typeof openTls>[0]): Promise<Tls> {
  const tls = await openTls(config, NOBODY);
  onTestFinished(() => tls.close());
  return tls;
}

describe.skipIf(!hasOpenssl())("the files of TLS", () => {
  test("files that do not match are refused by name", async () => {
    const [one, other] = [await makeCertificate(), await makeCertificate()];
    const refusal = async (tlsCert: string, tlsKey?: string, peerCa?: string): Promise<string> => {
      const thrown = await opened({ tlsCert, tlsKey, peerCa }).catch((error: unknown) => error);
      return thrown instanceof Error ? thrown.message : "none";
    };
    expect(await refusal(one.certFile)).toBe("--tls-cert needs --tls-key.");
    expect(await refusal(one.certFile, other.keyFile)).toBe(
      `--tls-key: ${other.keyFile} is not the key of the certificate in ${one.certFile}.`,
    );
    expect(await refusal(one.keyFile, one.keyFile)).toBe(`--tls-cert: ${one.keyFile} contains no certificate in PEM.`);
    expect(await refusal(one.certFile, one.certFile)).toBe(
      `--tls-key: ${one.certFile} contains no private key in PEM.`,
    );
    const unpaired = { tlsCert: one.certFile, tlsKey: one.keyFile, peerCa: undefined, requirePeerCert: true };
    await expect(opened(unpaired)).rejects.toThrow("--require-peer-cert needs --tls-cert and --peer-ca.");
    const required = await opened({ ...unpaired, peerCa: other.certFile });
    expect(required.server?.credentials.clientCa).toBe(other.cert);
    expect(await refusal("/nonexistent", one.keyFile)).toBe("--tls-cert: /nonexistent cannot be read (ENOENT).");
    expect(await refusal(one.certFile, one.keyFile, "/nonexistent")).toBe(
      "--peer-ca: /nonexistent cannot be read (ENOENT).",
    );
    const expired = await makeCertificate({ notAfter: "20200102000000Z" });
    expect(await refusal(expired.certFile, expired.keyFile)).toBe(
      `--tls-cert: the certificate in ${expired.certFile} expired at 2020-01-02T00:00:00.000Z.`,
    );
    const locked = join(await temporaryFolder(), "locked.pem");
    await run("openssl", ["pkey", "-in", one.keyFile, "-aes256", "-passout", "pass:secret", "-out", locked]);
    expect(await refusal(one.certFile, locked)).toBe(`--tls-key: ${locked} needs a passphrase.`);
  });

  test("changed files are used, and bad ones are not", async () => {
    const folder = await temporaryFolder();
    const [first, second] = [await makeCertificate({ folder }), await makeCertificate()];
    const tls = await opened({ tlsCert: first.certFile, tlsKey: first.keyFile, peerCa: first.certFile });
    const renewed: string[] = [];
    tls.server?.onRenewed(({ cert }) => renewed.push(cert));
    // For a moment the certificate has no fitting key.
    await writeFile(first.certFile, second.cert);
    await writeFile(first.keyFile, second.key);
    await eventually("it is renewed", async () => renewed.length > 0);
    expect(renewed).toEqual([second.cert]);
    // A server that starts only now gets them too.
    tls.server?.onRenewed(({ cert }) => renewed.push(cert));
    expect(renewed).toEqual([second.cert, second.cert]);
    expect(tls.peerTls()).toMatchObject({ ca: second.cert, cert: second.cert });
    expect([tls.nameProblem("https://127.0.0.1"), tls.nameProblem("https://other.test")]).toEqual([
      undefined,
      "its certificate does not name other.test",
    ]);
  });

  /** A server that notes the requests that reach it. */
  async function listening(server: Server, scheme: string): Promise<{ url: string; seen: string[] }> {
    const seen: string[] = [];
    server.on("request", (request, answer) => {
      seen.push(`${request.method} ${request.url} ${request.headers.authorization ?? ""}`.trim());
      answer.end("{}");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
  }

  test("with --peer-ca a key is sent only to servers with a valid certificate", async () => {
    const [good, wrong, misnamed] = await Promise.all([
      makeCertificate(),
      makeCertificate(),
      makeCertificate({ names: ["elsewhere.test"] }),
    ]);
    const peers = httpPeers(new PeerSecret(Buffer.alloc(32)), () => ({ ca: good.cert + misnamed.cert }));
    const caller = { authorization: "Bearer the-callers-key" };
    const own = await listening(createServer(good), "https");
    await peers.resume(own.url, ID, caller);
    expect(own.seen).toEqual([`POST /v1/sandboxes/${ID}/resume Bearer the-callers-key`]);
    const strangers = [
      await listening(createServer(wrong), "https"),
      await listening(createServer(misnamed), "https"),
      await listening(createPlainServer(), "http"),
    ];
    for (const { url, seen } of strangers) {
      await expect(peers.resume(url, ID, caller)).rejects.toMatchObject({ code: "server_unreachable" });
      expect(await peers.condition(url)).toBeUndefined();
      await ringOver(new PeerSecret(Buffer.alloc(32)), NOBODY, () => ({ ca: good.cert }))(url, ID);
      expect(seen).toEqual([]);
    }
  });

  test("two servers with certificates relay and hand off, for the command line with the authority", async () => {
    const { certFile, keyFile } = await makeCertificate();
    const store = join(await temporaryFolder(), "store");
    const flags = ["--backend", "fake", "--tls-cert", certFile, "--tls-key", keyFile, "--peer-ca", certFile];
    const [one, two] = await Promise.all([
      ServerProcess.start({ store, flags }),
      ServerProcess.start({ store, flags }),
    ]);
    const cli = async (server: ServerProcess, ...argv: string[]): Promise<string> => {
      const url = server.url.replace(/^ws/, "http");
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: certFile, SANDBOXER_URL: url };
      return (await run(process.execPath, [COMMAND, ...argv], { env })).stdout;
    };
    expect(one.url).toMatch(/^wss:/);
    await cli(one, "create", "--name", "web");
    expect(await cli(one, "exec", "web", "--", "echo", "over TLS")).toBe("over TLS\n");
    await cli(one, "handoff", "web", "--to", two.url.replace(/^ws/, "http"));
    expect(await cli(two, "exec", "web", "--", "echo", "on the other")).toBe("on the other\n");
    expect(JSON.parse(await cli(two, "instances", "--json"))).toMatchObject({
      items: [{ frozen: false }, { frozen: false }],
    });
  });
});
