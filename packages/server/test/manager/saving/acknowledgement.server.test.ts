import type { SnapshotInfo } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { HttpClient } from "../../gateway/http/support.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { heldSwap } from "../support/held-call.ts";

/** The head names a checkpoint for the first time. */
const publishes = (): ReturnType<typeof heldSwap> =>
  heldSwap((key, { checkpoint }) => key.endsWith("/metadata.json") && checkpoint !== null);

/** The events that report a save. */
const ACKNOWLEDGED =
  /^(checkpoint\.created|snapshot\.created|sandbox\.(rewound|handed_over|resumed)|operation\.ended)$/;

function listen(server: TestServer): string[] {
  const told: string[] = [];
  server.manager.events.listen(({ type }) => void (ACKNOWLEDGED.test(type) && told.push(type)));
  return told;
}

/** All earlier messages have arrived: a later response of the same server has. */
async function aWhile(http: HttpClient): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await http.call("GET", "/v1/operations");
}

describe("no save is reported before the head names it:", () => {
  test.each([
    ["of a checkpoint", {}],
    ["of one that leaves it running", { leave_running: true }],
  ])("%s over HTTP", async (_what, body) => {
    const head = publishes();
    const server = await startTestServer({ wrapStore: head.wrapStore });
    const http = new HttpClient(server);
    const { id } = await http.create();
    const told = listen(server);
    let answered = false;
    const call = http.call("POST", `/v1/sandboxes/${id}/checkpoint`, body).then(() => (answered = true));
    await head.reached;
    await aWhile(http);
    expect([answered, told, (await http.get(id)).checkpoint]).toEqual([false, [], null]);
    head.release();
    await call;
    expect(told).toEqual(["checkpoint.created", "operation.ended"]);
  });

  test("of a checkpoint over WebSocket", async () => {
    const head = publishes();
    const server = await startTestServer({ wrapStore: head.wrapStore });
    const { client } = await server.create({ enable_checkpoint: true });
    const told = listen(server);
    await client.send({ action: "checkpoint" }).until("CHECKPOINTING");
    const rest = client.untilClosed();
    await head.reached;
    await aWhile(new HttpClient(server));
    const early = await Promise.race([rest, Promise.resolve("nothing yet")]);
    expect([early, told]).toEqual(["nothing yet", []]);
    head.release();
    expect(await rest).toEqual(["CHECKPOINTED", 1000]);
    expect(told).toEqual(["checkpoint.created", "operation.ended"]);
  });

  test("of a rewind", async () => {
    const head = publishes();
    const server = await startTestServer({ wrapStore: head.wrapStore });
    const http = new HttpClient(server);
    const { id } = await http.create();
    const { body } = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`);
    const told = listen(server);
    const call = http.call("POST", `/v1/sandboxes/${id}/rewind`, { snapshot_id: body.id });
    await head.reached;
    await aWhile(http);
    expect(told).toEqual([]);
    head.release();
    expect((await call).status).toBe(200);
    expect(told).toEqual(["sandbox.rewound", "operation.ended"]);
  });

  test("of a handoff", async () => {
    const head = publishes();
    const server = await startTestServer({ wrapStore: head.wrapStore });
    const other = await startTestServer({ store: server.storeFolder ?? null });
    const http = new HttpClient(server);
    const { id } = await http.create();
    const told = [listen(server), listen(other)];
    const call = new HttpClient(other).call("POST", `/v1/sandboxes/${id}/resume`);
    await head.reached;
    await aWhile(http);
    expect(told).toEqual([[], []]);
    head.release();
    expect((await call).status).toBe(200);
    expect(told[0]).toContain("sandbox.handed_over");
  });
});

test("a snapshot is not reported before its record is ready", async () => {
  const record = heldSwap((key, { state }) => key.endsWith("/record.json") && state === "ready");
  const server = await startTestServer({ wrapStore: record.wrapStore });
  const http = new HttpClient(server);
  const { id } = await http.create();
  const told = listen(server);
  const call = http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`, { name: "one" });
  await record.reached;
  await aWhile(http);
  expect(told).toEqual([]);
  expect((await http.call("GET", "/v1/snapshots/one")).status).toBe(404);
  record.release();
  expect((await call).body.state).toBe("ready");
  expect(told).toEqual(["snapshot.created", "operation.ended"]);
});
