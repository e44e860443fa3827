import { once } from "node:events";
import { connect } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { parseConfig } from "../../src/main/config.ts";
import { startServer } from "../../src/main/index.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

test("the limits of memory, resources, bodies and proxies in the configuration are those of the server", async () => {
  const folder = await temporaryFolder();
  const flags = {
    backend: "fake",
    port: "0",
    dataDirectory: folder,
    cacheDirectory: folder,
    logLevel: "silent",
    maxCollectedMb: "3",
    maxResources: "memory=64m",
    maxTotalMemory: "96m",
    trustedProxies: "127.0.0.1",
    bodyTimeoutMs: "1s",
  };
  const server = await startServer(parseConfig({ flags, env: {}, homeDirectory: folder }), { report: () => {} });
  onTestFinished(async () => server.drain());
  const headers = { "content-type": "application/json", "x-forwarded-for": "192.0.2.1" };
  const create = async (memoryMb: number): Promise<number> => {
    const body = JSON.stringify({ resources: { memory_mb: memoryMb } });
    return (await fetch(`${server.url}/v1/sandboxes`, { method: "POST", headers, body })).status;
  };
  expect([await create(65), await create(64), await create(64)]).toEqual([422, 201, 429]);
  const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text();
  expect(metrics).toMatch(/^sandboxer_collected_output_limit_bytes 3145728$/m);

  const slow = connect(Number(new URL(server.url).port), "127.0.0.1");
  await once(slow, "connect");
  slow.write(
    "POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
  );
  expect(await textOf(slow)).toContain("The body of the request was sent too slowly.");
});
