import { describe, expect, test } from "vitest";
import type { RawClient } from "../../../../../test/kit/server/raw-client.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

const PLAIN = { extensions: false } as const;

/** All received messages, without the ids, which are random. */
function messages({ events }: RawClient): unknown[] {
  return events.map((event) =>
    JSON.parse(JSON.stringify(event, (name, value: unknown) => (isId(name) ? "ID" : value))),
  );
}

function isId(name: string): boolean {
  return ["sandbox_id", "sandbox_token", "execution_id"].includes(name);
}

function status(name: string, more: object = {}): object {
  return { event: "status_update", status: `SANDBOX_${name}`, ...more };
}

const IDENTITY = { event: "sandbox_id", sandbox_id: "ID", sandbox_token: "ID" };

describe("a client that knows only the original protocol gets its fields and no others", () => {
  test("from creation through output, exit and errors to the end", async () => {
    const server = await startTestServer();
    const { client } = await server.create({ enable_checkpoint: true }, PLAIN);
    await client.run("bash", "echo one; echo two >&2; exit 3").until("EXECUTION_DONE");
    await client.run("cobol", "").until("EXECUTION_DONE");
    await client.send({ event: "stdin" }).until("error:");
    await client.send({ action: "reconnect" }).until("EXECUTION_DONE");
    await client.send({ action: "checkpoint" }).untilClosed();
    const unknown = 'Unsupported language "cobol". Supported languages: python, bash, javascript.';
    expect(messages(client)).toEqual([
      status("CREATING"),
      IDENTITY,
      status("RUNNING"),
      status("EXECUTION_RUNNING"),
      { event: "stdout", data: "one\n" },
      { event: "stderr", data: "two\n" },
      status("EXECUTION_DONE"),
      status("EXECUTION_UNSUPPORTED_LANGUAGE_ERROR"),
      { event: "error", message: unknown },
      status("EXECUTION_DONE"),
      status("STDIN_ERROR"),
      { event: "error", message: "A stdin event needs data, which must be a string." },
      status("EXECUTION_DONE"),
      status("CHECKPOINTING"),
      status("CHECKPOINTED"),
    ]);
  });

  test("on attach, and when it is refused", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create({}, PLAIN);
    await client.leave();
    const wrong = server.attach(id, "?sandbox_token=00", PLAIN);
    await wrong.untilClosed();
    const [refused, error] = messages(wrong);
    expect([refused, Object.keys(error as object)]).toEqual([status("PERMISSION_DENIAL_ERROR"), ["event", "message"]]);
    const again = server.attach(id, "", PLAIN);
    await again.until("RUNNING");
    await again.run("bash", "echo here").until("EXECUTION_DONE");
    expect(messages(again)).toEqual([
      status("RUNNING"),
      status("EXECUTION_RUNNING"),
      { event: "stdout", data: "here\n" },
      status("EXECUTION_DONE"),
    ]);
  });
});

describe("a client that requests extensions gets our fields too", () => {
  test("on create", async () => {
    const server = await startTestServer();
    const { client } = await server.create({});
    await client.run("bash", "echo one; exit 3").until("EXECUTION_DONE");
    await client.run("cobol", "").until("EXECUTION_DONE");
    const message = 'Unsupported language "cobol". Supported languages: python, bash, javascript.';
    const hint = expect.any(String) as unknown;
    expect(messages(client)).toEqual([
      status("CREATING"),
      IDENTITY,
      status("RUNNING"),
      status("EXECUTION_RUNNING", { execution_id: "ID" }),
      { event: "stdout", data: "one\n", execution_id: "ID", offset: 4 },
      status("EXECUTION_DONE", { execution_id: "ID", exit_code: 3 }),
      status("EXECUTION_UNSUPPORTED_LANGUAGE_ERROR", { message }),
      { event: "error", message, code: "bad_request", hint },
      status("EXECUTION_DONE"),
    ]);
  });

  test("on attach, by the query", async () => {
    const server = await startTestServer();
    const { client, id } = await server.create({}, PLAIN);
    await client.leave();
    const again = server.attach(id, "?extensions=1", PLAIN);
    await again.until("RUNNING");
    await again.run("bash", "echo here").until("EXECUTION_DONE");
    expect(messages(again).at(-1)).toEqual(status("EXECUTION_DONE", { execution_id: "ID", exit_code: 0 }));
  });
});
