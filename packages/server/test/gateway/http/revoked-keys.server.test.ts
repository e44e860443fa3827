import { expect, test } from "vitest";
import { KeyFile } from "../../../src/gateway/access/key-file.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient } from "./support.ts";

async function readToEnd(response: Response): Promise<string> {
  let text = "";
  try {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += chunk;
    return `${text}[end]`;
  } catch {
    return `${text}[cut]`;
  }
}

test("a client that follows events or a process is cut off when the key is revoked", async () => {
  const keys = new KeyFile(await temporaryFolder());
  const [kept, revoked] = await Promise.all([
    keys.create({ name: "kept", scope: "use" }),
    keys.create({ name: "revoked", scope: "use" }),
  ]);
  const server = await startTestServer({ access: { keyFile: keys.path } });
  const http = new HttpClient(server);
  const asKept = { authorization: `Bearer ${kept.text}` };
  const asRevoked = { authorization: `Bearer ${revoked.text}` };
  const { id } = (await http.call<{ id: string }>("POST", "/v1/sandboxes", {}, { headers: asKept })).body;
  const events = await fetch(`${server.httpUrl}/v1/events?follow=true`, { headers: asRevoked });
  const lines = await fetch(`${server.httpUrl}/v1/sandboxes/${id}/exec`, {
    method: "POST",
    headers: { ...asRevoked, accept: "application/x-ndjson", "content-type": "application/json" },
    body: JSON.stringify({ shell: "sleep 600" }),
  });
  expect([events.status, lines.status]).toEqual([200, 200]);
  const texts = Promise.all([readToEnd(events), readToEnd(lines)]);
  await keys.revoke(revoked.record.id);
  expect(await texts).toEqual([expect.stringMatching(/\[cut\]$/), expect.stringMatching(/"started".*\[cut\]$/s)]);
});
