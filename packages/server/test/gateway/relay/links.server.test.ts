import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { call, NEVER, pair } from "./support.ts";

test("a link, which has no headers, may forbid relaying in its URL; a call that changes something may not", async () => {
  const { url } = await pair();
  const file = `${url}/files?path=%2Fworkspace%2Fa+%2B%26.txt`;
  const content = { "content-type": "application/octet-stream" };
  const put = (address: string, headers: object): Promise<Response> =>
    fetch(address, { method: "PUT", headers: { ...content, ...headers }, body: "hello" });
  expect((await put(file, NEVER)).status).toBe(409);
  expect((await put(`${file}&relay=never`, {})).status).toBe(204);
  expect((await fetch(`${file}&relay=never`)).status).toBe(409);
  const read = await fetch(`${file}&relay=allow`);
  expect([read.status, await read.text()]).toEqual([200, "hello"]);
  expect(read.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''a%20%2B%26.txt");
});

test("the parameter about passing a call on is not passed on", async () => {
  const seen: (string | undefined)[] = [];
  const stand = createServer(({ url }, response) => {
    seen.push(url);
    response.writeHead(409, { "content-type": "application/json" }).end('{"error":{}}');
  });
  await once(stand.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void stand.close());
  const advertiseUrl = `http://127.0.0.1:${(stand.address() as AddressInfo).port}`;
  const owner = await startTestServer({ advertiseUrl });
  const asked = await startTestServer({ store: owner.storeFolder ?? null });
  const { id } = (await call("POST", `${owner.httpUrl}/v1/sandboxes`, {})).body;
  await call("GET", `${asked.httpUrl}/v1/sandboxes/${id}/files?relay=allow&path=%2Fa`);
  await call("GET", `${asked.httpUrl}/v1/sandboxes/${id}/reachability?relay=allow`);
  expect(seen).toEqual([`/v1/sandboxes/${id}/files?path=%2Fa`, `/v1/sandboxes/${id}/reachability`]);
});
