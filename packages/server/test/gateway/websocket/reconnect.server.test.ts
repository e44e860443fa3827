import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

const DURABLE = { enable_checkpoint: true };

/** Numbered lines, paced, so that there is always something to come. */
const LINES = "for i in $(seq 1 60); do echo line $i; sleep 0.002; done; exit 7";
const ALL_LINES = Array.from({ length: 60 }, (_, index) => `line ${index + 1}\n`).join("");

describe("reconnect", () => {
  test("without an execution, on a fresh sandbox", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    expect(await client.send({ action: "reconnect" }).until("EXECUTION_DONE")).toEqual(["EXECUTION_DONE"]);
  });

  test("sent before the sandbox runs, it waits its turn", async () => {
    const server = await startTestServer();
    const client = server.connect("/create").send({}).send({ action: "reconnect" });
    expect(await client.until("EXECUTION_DONE")).toEqual(["CREATING", "sandbox_id", "RUNNING", "EXECUTION_DONE"]);
  });

  test("after everything was delivered", async () => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create();
    await client.run("bash", "echo seen; exit 4").until("EXECUTION_DONE");
    expect(await client.send({ action: "reconnect" }).until("EXECUTION_DONE")).toEqual(["EXECUTION_DONE"]);
    await client.leave();
    const again = server.attach(id).send({ action: "reconnect" });
    expect(await again.until("EXECUTION_DONE")).toEqual(["RUNNING", "EXECUTION_DONE"]);
    expect(again.events.at(-1)).toMatchObject({ exit_code: 4 });
  });

  test("an execution in progress: the rest arrives, once", async () => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create();
    await client.run("bash", LINES).until("out:");
    client.terminate();
    await client.closed;
    const again = await server.attachWhenFree(id);
    const came = await again.send({ action: "reconnect" }).until("EXECUTION_DONE");
    expect([came[0], came.at(-1)]).toEqual(["EXECUTION_RUNNING", "EXECUTION_DONE"]);
    expect(client.output + again.output).toBe(ALL_LINES);
    expect(again.events.at(-1)).toMatchObject({ exit_code: 7 });
  });

  test("an execution that ended without a client, until its end was delivered", async () => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create();
    await client.run("bash", "sleep 0.05; echo late; exit 7").until("EXECUTION_RUNNING");
    client.terminate();
    await eventually("it has ended", () => server.operations.some(({ operation }) => operation === "execute"));
    const again = await server.attachWhenFree(id);
    expect(await again.send({ action: "reconnect" }).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:late\n",
      "EXECUTION_DONE",
    ]);
    expect(again.events.at(-1)).toMatchObject({ exit_code: 7 });
    expect(await again.send({ action: "reconnect" }).until("EXECUTION_DONE")).toEqual(["EXECUTION_DONE"]);
  });

  test("a client that confirms nothing has seen nothing, as far as the server knows", async () => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create({}, { autoPong: false });
    await client.run("bash", "echo unsure").until("EXECUTION_DONE");
    client.terminate();
    const again = await server.attachWhenFree(id);
    expect(await again.send({ action: "reconnect" }).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:unsure\n",
      "EXECUTION_DONE",
    ]);
  });

  test("an id and an offset describe exactly the received output", async () => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create({}, { autoPong: false });
    await client.run("bash", "printf abc; sleep 0.02; printf defg; sleep 0.02; printf hij").until("EXECUTION_DONE");
    const { execution_id } = await client.event("stdout");
    client.terminate();
    const again = await server.attachWhenFree(id);
    expect(await again.send({ action: "reconnect", execution_id, offset: 5 }).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:fghij",
      "EXECUTION_DONE",
    ]);
    // Also what was confirmed, as long as it is kept.
    expect(await again.send({ action: "reconnect", execution_id, offset: 0 }).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:abcdefghij",
      "EXECUTION_DONE",
    ]);
    expect(await again.send({ action: "reconnect", execution_id, offset: 10 }).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "EXECUTION_DONE",
    ]);
    // Nothing was received of another execution.
    expect(
      await again.send({ action: "reconnect", execution_id: "another", offset: 5 }).until("EXECUTION_DONE"),
    ).toEqual(["EXECUTION_DONE"]);
    // Invalid values are ignored.
    expect(await again.send({ action: "reconnect", offset: -1 }).until("EXECUTION_DONE")).toEqual(["EXECUTION_DONE"]);
    expect(await again.send({ action: "reconnect", offset: "NaN" }).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_DONE",
    ]);
  });

  test("in the middle of the stream: nothing twice, one end", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create({}, { autoPong: false });
    await client.run("bash", LINES).until("out:");
    const came = await client.send({ action: "reconnect" }).until("EXECUTION_DONE");
    expect(came.filter((word) => !word.startsWith("out:"))).toEqual(["EXECUTION_RUNNING", "EXECUTION_DONE"]);
    expect(client.output).toBe(ALL_LINES);
  });

  test("a client that attached without reconnecting learns that its process was killed", async () => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create();
    await client.run("bash", "sleep 60").until("EXECUTION_RUNNING");
    await client.leave();
    const again = server.attach(id);
    await again.until("RUNNING");
    expect(await again.send({ action: "kill_process" }).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_FORCE_KILLED",
      "EXECUTION_DONE",
    ]);
  });
});

describe("across a restore", () => {
  test("unread output is kept on another server", async () => {
    const store = await temporaryFolder();
    const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
    const { client, id } = await first.create({ ...DURABLE, on_disconnect: "checkpoint" });
    await client.run("bash", LINES).until("out:");
    client.terminate();
    await eventually("it is saved", () => first.operations.some(({ operation }) => operation === "checkpoint"));
    const again = second.attach(id).send({ action: "reconnect" });
    const came = await again.until("EXECUTION_DONE");
    expect(came.filter((word) => !word.startsWith("out:"))).toEqual([
      "RESTORING",
      "RUNNING",
      "EXECUTION_RUNNING",
      "EXECUTION_DONE",
    ]);
    expect(client.output + again.output).toBe(ALL_LINES);
    expect(again.events.at(-1)).toMatchObject({ exit_code: 7 });
  });

  test("an execution moves along with a drain, and continues elsewhere without a gap or a repeat", async () => {
    const store = await temporaryFolder();
    const [first, second] = [await startTestServer({ store }), await startTestServer({ store })];
    const { client, id } = await first.create(DURABLE, { pongDelayMs: 20 });
    await client.run("bash", LINES).until("out:");
    await first.drain();
    const said = (await client.untilClosed()).filter((word) => !String(word).startsWith("out:"));
    expect(said).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1012]);
    const again = second.attach(id).send({ action: "reconnect" });
    await again.until("EXECUTION_DONE");
    expect(client.output + again.output).toBe(ALL_LINES);
    expect(again.events.at(-1)).toMatchObject({ exit_code: 7 });
  });

  test("a client that checkpoints at the moment it learns of the end has nothing left", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create(DURABLE, { pongDelayMs: 20 });
    client.socket.on("message", (data: Buffer) => {
      if (data.includes("EXECUTION_DONE")) client.send({ action: "checkpoint" });
    });
    await client.run("bash", "echo seen").untilClosed();
    const again = server.attach(id).send({ action: "reconnect" });
    expect(await again.until("EXECUTION_DONE")).toEqual(["RESTORING", "RUNNING", "EXECUTION_DONE"]);
  });
});
