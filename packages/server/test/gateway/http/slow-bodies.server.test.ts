import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./processes/support.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

/** A request whose head is there, and whose body comes as the test wants it. */
function begun({ httpUrl }: TestServer, head: string): { readonly tcp: Socket; readonly answer: Promise<string> } {
  const { hostname, port } = new URL(httpUrl);
  const tcp = connect(Number(port), hostname).on("error", () => {});
  onTestFinished(() => void tcp.destroy());
  tcp.write(`${head}\r\nHost: localhost\r\n\r\n`);
  let text = "";
  tcp.on("data", (data: Buffer) => (text += data.toString()));
  return { tcp, answer: once(tcp, "close").then(() => text) };
}

const POST = "POST /v1/sandboxes HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1000000";

test("a hundred bodies that arrive byte by byte, or not at all, are cut", async () => {
  const server = await startTestServer({ store: null, bodyTimeoutMs: 1_000 });
  const dripping = Array.from({ length: 50 }, () => begun(server, POST));
  const silent = Array.from({ length: 50 }, () => begun(server, POST));
  const drip = setInterval(() => dripping.forEach(({ tcp }) => tcp.write(" ")), 50);
  onTestFinished(() => clearInterval(drip));
  for (const answer of await Promise.all([...dripping, ...silent].map((each) => each.answer))) {
    expect(answer).toMatch(/^HTTP\/1.1 503 /);
    expect(answer).toContain('"message":"The body of the request was sent too slowly."');
  }
});

test("an upload that stalls is cut, however much has arrived before", async () => {
  const server = await startTestServer({ store: null, bodyTimeoutMs: 1_000 });
  const box = await SandboxClient.create(server);
  const head = `PUT /v1/sandboxes/${box.id}/files?path=/tmp/big HTTP/1.1\r\nContent-Type: application/octet-stream`;
  const { tcp, answer } = begun(server, `${head}\r\nContent-Length: 100000000`);
  tcp.write(Buffer.alloc(8_000_000));
  expect(await answer).toContain("was sent too slowly");
});

test("a long upload that makes progress continues", async () => {
  const server = await startTestServer({ store: null, bodyTimeoutMs: 500 });
  const box = await SandboxClient.create(server);
  const chunk = Buffer.alloc(10_000, "x");
  async function* slowly(): AsyncGenerator<Uint8Array> {
    for (let sent = 0; sent < 30; sent += 1) {
      await meanwhile(100);
      yield chunk;
    }
  }
  const response = await fetch(`${box.url}/files?path=/tmp/slow`, {
    method: "PUT",
    headers: { "content-type": "application/octet-stream" },
    body: ReadableStream.from(slowly()),
    duplex: "half",
  });
  expect(response.status).toBeLessThan(300);
});
