import type { CreatedSandboxRecord, OperationRecordBody } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { KeyFile } from "../../src/gateway/access/key-file.ts";
import { temporaryFolder } from "../websocket/support/temporary-folder.ts";
import { startTestServer } from "../websocket/support/test-server.ts";
import { HttpClient } from "./support.ts";

interface OperationPage {
  readonly items: OperationRecordBody[];
}

test("what an operation answered is for who asked for it, and for no other key", async () => {
  const keys = new KeyFile(await temporaryFolder());
  const [maker, reader] = await Promise.all([
    keys.create({ name: "maker", scope: "use" }),
    keys.create({ name: "reader", scope: "read" }),
  ]);
  const http = new HttpClient(await startTestServer({ access: { keyFile: keys.path } }));
  const asMaker = { headers: { authorization: `Bearer ${maker.text}` } };
  const asReader = { headers: { authorization: `Bearer ${reader.text}` } };
  const made = await http.call<CreatedSandboxRecord>("POST", "/v1/sandboxes", {}, asMaker);
  const { items } = (await http.call<OperationPage>("GET", "/v1/operations", undefined, asReader)).body;
  const path = `/v1/operations/${items[0]?.id}`;
  expect((await http.call("GET", path, undefined, asReader)).body).toMatchObject({ state: "done", result: null });
  expect((await http.call("GET", path, undefined, asMaker)).body).toMatchObject({ result: { token: made.body.token } });
});
