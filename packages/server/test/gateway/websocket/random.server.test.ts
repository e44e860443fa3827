import type { ServerEvent } from "@sandboxer/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const anyJson = fc.jsonValue().map((value) => JSON.stringify(value));
const oneOf = <Value>(...values: Value[]): fc.Arbitrary<Value> => fc.constantFrom(...values);

const message: fc.Arbitrary<string | Buffer> = fc.oneof(
  {
    weight: 4,
    arbitrary: oneOf("echo hi", "exit 3", "sleep 0.01; echo x", "read x", "yes | head -n 2000", "((", "").map((code) =>
      JSON.stringify({ language: "bash", code }),
    ),
  },
  {
    weight: 2,
    arbitrary: oneOf("print(1)", "print(", "import sys\nsys.exit(2)").map((code) =>
      JSON.stringify({ language: "python", code }),
    ),
  },
  {
    weight: 2,
    arbitrary: oneOf("x\n", "", "\ud800", "y".repeat(5000)).map((data) => JSON.stringify({ event: "stdin", data })),
  },
  {
    weight: 2,
    arbitrary: oneOf(
      '{"action":"kill_process"}',
      '{"action":"reconnect"}',
      '{"action":"snapshot_filesystem","name":"n"}',
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ action: fc.constant("reconnect"), offset: fc.anything(), execution_id: fc.anything() })
      .map((value) => JSON.stringify(value, plain)),
  },
  { weight: 2, arbitrary: fc.string({ maxLength: 200 }) },
  { weight: 2, arbitrary: anyJson },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc
      .record(
        { language: fc.jsonValue(), code: fc.jsonValue(), action: fc.jsonValue(), event: fc.jsonValue() },
        { requiredKeys: [] },
      )
      .map((value) => JSON.stringify(value)),
  },
);

/** JSON has no words for some of what fast-check makes up. */
function plain(_key: string, value: unknown): unknown {
  return typeof value === "bigint" || typeof value === "symbol" || typeof value === "function" ? String(value) : value;
}

test("with any messages in any order, the session keeps answering", async () => {
  const server = await startTestServer();
  await fc.assert(
    fc.asyncProperty(fc.array(message, { maxLength: 25 }), async (messages) => {
      const { client } = await server.create({ enable_checkpoint: true });
      for (const each of messages) client.send(each);
      // Whatever runs is ended, and then a new execution must go through.
      client.send({ action: "kill_process" });
      for (let attempt = 0; !client.output.includes("the end\n"); attempt += 1) {
        expect(attempt).toBeLessThan(200);
        const from = client.events.length;
        client.run("bash", "echo the end");
        await client.when(() => client.events.slice(from).some(isAnswer), `an answer to ${JSON.stringify(messages)}`);
        await meanwhile(2);
      }
      expect(client.closeCode).toBeUndefined();
      // Every error status is explained right after it.
      client.events.forEach((event, index) => {
        if (event.event === "status_update" && event.status.endsWith("ERROR"))
          expect(client.events[index + 1]).toMatchObject({ event: "error", message: event.message });
      });
      expect((await client.send({ action: "kill_sandbox" }).untilClosed()).slice(-5)).toEqual([
        "KILLING",
        "DELETING",
        "DELETED",
        "KILLED",
        1000,
      ]);
    }),
    { numRuns: 150 },
  );
  expect(server.backend.runningCount).toBe(0);
});

/** Refused because something still runs, or run. */
function isAnswer(event: ServerEvent): boolean {
  if (event.event === "stdout") return event.data.includes("the end\n");
  return event.event === "error" && event.message === "An execution is already in progress.";
}

test("whatever the first message is, the answer is a sandbox or a refusal", async () => {
  const server = await startTestServer();
  const first = fc.oneof(
    anyJson,
    fc.string({ maxLength: 200 }),
    fc
      .record(
        {
          idle_timeout: fc.oneof(fc.jsonValue(), fc.double()),
          enable_checkpoint: fc.oneof(fc.boolean(), fc.jsonValue()),
          enable_sandbox_handoff: fc.boolean(),
          on_disconnect: fc.oneof(oneOf("keep", "checkpoint"), fc.jsonValue()),
          env: fc.oneof(fc.dictionary(fc.string(), fc.string()), fc.jsonValue()),
          labels: fc.oneof(fc.dictionary(fc.string(), fc.string()), fc.jsonValue()),
          resources: fc.oneof(
            fc.dictionary(
              oneOf("cpus", "memory_mb", "processes", "disk_mb", "file_mb", "x"),
              fc.oneof(fc.integer(), fc.double()),
            ),
            fc.jsonValue(),
          ),
          image: fc.jsonValue(),
          filesystem_snapshot_name: fc.oneof(fc.string(), fc.jsonValue()),
        },
        { requiredKeys: [] },
      )
      .map((value) => JSON.stringify(value)),
  );
  await fc.assert(
    fc.asyncProperty(first, async (text) => {
      const client = server.connect("/create").send(text);
      const said = await client.outcome();
      expect(said[0]).toBe("CREATING");
      if (said.at(-1) === "RUNNING")
        expect((await client.send({ action: "kill_sandbox" }).untilClosed()).at(-1)).toBeOneOf([1000]);
      else expect(said).toEqual(["CREATING", "CREATION_ERROR", expect.stringMatching(/^error:/), 4000]);
    }),
    { numRuns: 300 },
  );
  expect(server.backend.runningCount).toBe(0);
});
