import { expect, test } from "vitest";
import { HttpClient } from "../../gateway/http/support.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { CrashServer } from "./support/crash-server.ts";
import { DURABLE } from "./support/pair.ts";
import { contentOf, save, write } from "./support/survivor.ts";

/** This lease ends later than any test. */
const LEASE_TTL = "10m";

test("the next server of a machine takes over the sandboxes of a killed one at once, on every backend", async () => {
  const [store, dataDirectory] = [await temporaryFolder(), await temporaryFolder()];
  const start = () => CrashServer.start({ store, dataDirectory, leaseTtl: LEASE_TTL });
  const first = await start();
  const { client, id } = await first.create(DURABLE);
  await write(client, "kept");
  await save(client);
  await first.attach(id).until("RUNNING");
  const lost = await first.create({});
  first.kill("SIGKILL");
  await first.exited;

  const second = await start();
  const resumed = second.attach(id);
  await resumed.until("RUNNING");
  expect(await contentOf(resumed)).toBe("kept");
  // Nothing is left of a sandbox that was never saved, and it is not shown as running.
  const http = new HttpClient({ httpUrl: second.url.replace(/^ws/, "http") });
  await expect.poll(async () => (await http.call("GET", `/v1/sandboxes/${lost.id}`)).status).toBe(404);
  const listed = await http.call<{ items: { id: string }[] }>("GET", "/v1/sandboxes");
  expect(listed.body.items.map((item) => item.id)).toEqual([id]);
});
