import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

const ERROR = expect.stringMatching(/^error:./);

const ROWS: [string, string | Buffer, string][] = [
  ["not JSON", "hello", "EXECUTION_ERROR"],
  ["JSON that is cut", '{"language":"bash","code":"echo', "EXECUTION_ERROR"],
  ["a list", "[1,2]", "EXECUTION_ERROR"],
  ["null", "null", "EXECUTION_ERROR"],
  ["a number", "42", "EXECUTION_ERROR"],
  ["an empty text", "", "EXECUTION_ERROR"],
  ["a binary frame", Buffer.from('{"language":"bash","code":"echo 1"}'), "EXECUTION_ERROR"],
  ["a language without code", '{"language":"python"}', "EXECUTION_ERROR"],
  ["code that is a number", '{"language":"python","code":5}', "EXECUTION_ERROR"],
  ["code with NUL", '{"language":"bash","code":"echo a\\u0000b"}', "EXECUTION_ERROR"],
  ["an unknown language", '{"language":"cobol","code":"x"}', "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR"],
  ["a language of the prototype", '{"language":"constructor","code":"x"}', "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR"],
  ["a language that is a number", '{"language":5,"code":"x"}', "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR"],
  ["an unknown action", '{"action":"dance"}', "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR"],
  ["an unknown event", '{"event":"stdout","data":"x"}', "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR"],
  ["an empty object", "{}", "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR"],
  ["an action that is a list", '{"action":["checkpoint"]}', "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR"],
];

test.each(ROWS)("%s, with nothing running: refused and done", async (_what, message, status) => {
  const server = await startTestServer({ store: null });
  const { client } = await server.create();
  expect(await client.send(message).until("EXECUTION_DONE")).toEqual([status, ERROR, "EXECUTION_DONE"]);
  if (status.includes("LANGUAGE")) expect((await client.event("error")).message).toMatch(/python.*bash.*javascript/);
  expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toEqual([
    "EXECUTION_RUNNING",
    "out:on\n",
    "EXECUTION_DONE",
  ]);
});

test.each(ROWS)("%s, with something running: refused, and the execution continues", async (_what, message, status) => {
  const server = await startTestServer({ store: null });
  const { client } = await server.create();
  await client.run("bash", "read x; echo $x").until("EXECUTION_RUNNING");
  expect(await client.send(message).until("error")).toEqual([status, ERROR]);
  client.send({ event: "stdin", data: "end\n" });
  expect(await client.until("EXECUTION_DONE")).toEqual(["out:end\n", "EXECUTION_DONE"]);
  expect(client.events.at(-1)).toMatchObject({ exit_code: 0 });
});

test("a second execution while one runs", async () => {
  const server = await startTestServer();
  const { client } = await server.create();
  await client.run("bash", "read x; echo $x").until("EXECUTION_RUNNING");
  expect(await client.run("bash", "echo second").until("error")).toEqual([
    "EXECUTION_ERROR",
    "error:An execution is already in progress.",
  ]);
  client.send({ event: "stdin", data: "first\n" });
  expect(await client.until("EXECUTION_DONE")).toEqual(["out:first\n", "EXECUTION_DONE"]);
});

test("two executions sent at once: the second is refused", async () => {
  const server = await startTestServer();
  const { client } = await server.create();
  client.run("bash", "sleep 0.05; echo first").run("bash", "echo second");
  const came = await client.until("EXECUTION_DONE");
  expect(came).toEqual([
    "EXECUTION_RUNNING",
    "EXECUTION_ERROR",
    "error:An execution is already in progress.",
    "out:first\n",
    "EXECUTION_DONE",
  ]);
});

test.each([10 * 1024 * 1024, 1024 * 1024 + 1])(
  "a message of %d bytes closes the session, not the execution",
  async (bytes) => {
    const server = await startTestServer();
    const { client, id } = await server.create();
    await client.run("bash", "read x; echo $x").until("EXECUTION_RUNNING");
    client.send("x".repeat(bytes));
    expect(await client.closed).toBe(1009);
    expect(client.rest()).toEqual([]);
    const { client: other } = await server.create();
    expect(await other.run("bash", "echo fine").until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:fine\n",
      "EXECUTION_DONE",
    ]);
    const again = server.attach(id);
    await again.until("RUNNING");
    again.send({ action: "reconnect" });
    await again.until("EXECUTION_RUNNING");
    again.send({ event: "stdin", data: "still here\n" });
    expect(await again.until("EXECUTION_DONE")).toEqual(["out:still here\n", "EXECUTION_DONE"]);
  },
);

test("10 MB as the first message", async () => {
  const server = await startTestServer();
  const client = server.connect("/create").send(JSON.stringify({ labels: { a: "x".repeat(10_000_000) } }));
  expect(await client.closed).toBe(1009);
  expect(server.backend.runningCount).toBe(0);
});

test("a message of exactly the limit is read", async () => {
  const server = await startTestServer();
  const { client } = await server.create();
  const frame = JSON.stringify({ language: "bash", code: "echo fits", padding: "" });
  client.send(frame.replace('"padding":""', `"padding":"${"x".repeat(1024 * 1024 - frame.length)}"`));
  expect(await client.until("EXECUTION_DONE")).toEqual(["EXECUTION_RUNNING", "out:fits\n", "EXECUTION_DONE"]);
});
