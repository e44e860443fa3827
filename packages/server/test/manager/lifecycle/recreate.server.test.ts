import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { lines, SandboxClient } from "../../gateway/http/processes/support.ts";
import { HttpClient, type Answer, type ErrorAnswer } from "../../gateway/http/support.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { absentableStore } from "../support/absentable-store.ts";
import { stillnessWatch } from "../support/stillness-watch.ts";

interface Held {
  readonly server: TestServer;
  readonly id: string;
  readonly answer: Promise<Answer<ErrorAnswer>>;
  /** Lets the new copy be made. */
  readonly goOn: () => void;
}

/** A sandbox that is being recreated, and whose new copy does not exist yet. */
async function heldRecreate(options: TestServerOptions = {}): Promise<Held> {
  const server = await startTestServer(options);
  const http = new HttpClient(server);
  const { id } = await http.create();
  const gate = Promise.withResolvers<void>();
  server.backend.faults.set("acquire", { until: gate.promise, times: 1 });
  const answer = http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/recreate`);
  const begun = (): boolean =>
    server.manager.operations.records().some(({ kind, state }) => kind === "recreate" && state === "running");
  await eventually("it has begun", begun);
  return { server, id, answer, goOn: gate.resolve };
}

async function codeOf(answer: Promise<Answer<ErrorAnswer>>): Promise<string> {
  return (await answer).body.error.code;
}

test("a sandbox that ends while it is recreated is not created again", async () => {
  const { server, id, answer, goOn } = await heldRecreate();
  server.backend.crash(id);
  await eventually("its end is known", () => server.manager.states().running === undefined);
  goOn();
  expect(await codeOf(answer)).toBe("wrong_state");
  expect(server.backend.runningCount).toBe(0);
});

test("a sandbox that is lost while it is recreated leaves no copy here", async () => {
  const { server, answer, goOn } = await heldRecreate();
  await server.manager.loseOwnership(new SandboxerError("lease_lost", "declared dead"));
  goOn();
  expect(await codeOf(answer)).toBe("wrong_state");
  expect(server.backend.runningCount).toBe(0);
});

test("a sandbox that gets a client while it is recreated stays unchanged", async () => {
  const { server, id, answer, goOn } = await heldRecreate();
  const client = server.attach(id);
  await client.until("RUNNING");
  goOn();
  expect(await codeOf(answer)).toBe("sandbox_in_use");
  expect(server.backend.runningCount).toBe(1);
  expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
});

test("readers of a sandbox that is recreated learn that it moves", async () => {
  const server = await startTestServer();
  const box = await SandboxClient.create(server);
  const all = lines(await box.stream({ shell: "echo one; read x" }));
  await all.next();
  await all.next();
  expect((await box.call("POST", "/recreate")).status).toBe(200);
  expect(await Array.fromAsync(all)).toMatchObject([{ event: "moving", offset: 4 }]);
});

test("a copy that is created while the server cannot renew its lease is frozen", async () => {
  const store = absentableStore();
  const watch = stillnessWatch();
  const { server, id, answer, goOn } = await heldRecreate({ leaseTtlMs: 1_000, ...store, ...watch });
  store.away = true;
  await eventually("the old copy is held still", () => watch.still.get(id) === true);
  watch.still.delete(id);
  goOn();
  expect((await answer).status).toBe(200);
  await eventually("the new copy is held still", () => watch.still.get(id) === true);
  store.away = false;
  await eventually("it goes on", () => watch.still.get(id) === false);
  expect(server.backend.runningCount).toBe(1);
});

test("where a sandbox is found again by its id there are never two copies", async () => {
  const backend = new FakeBackend({ capabilities: { snapshot: "none", outlivesServer: true } });
  const server = await startTestServer({ store: null, backend });
  const http = new HttpClient(server);
  const { id } = await http.create();
  const refused = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/recreate`);
  expect([refused.status, refused.body.error.code]).toEqual([422, "not_supported"]);
  expect(await http.get(id)).toMatchObject({ state: "running" });
});
