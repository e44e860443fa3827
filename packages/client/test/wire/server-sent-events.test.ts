import fc from "fast-check";
import { expect, test } from "vitest";
import { Sandboxer } from "../../src/index.ts";
import { readServerSentEvents } from "../../src/wire/server-sent-events.ts";
import { failure, scriptedServer, type ScriptedAnswer } from "../support/scripted-server.ts";

async function read(text: string, cuts: readonly number[]): Promise<unknown[]> {
  const bytes = new TextEncoder().encode(text);
  const bounds = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  const pieces = bounds.slice(1).map((end, index) => bytes.subarray(bounds[index], end));
  const found: unknown[] = [];
  for await (const event of readServerSentEvents(ReadableStream.from(pieces))) found.push(event);
  return found;
}

test("events are the same, however the bytes are cut", async () => {
  const text =
    ": hello\n\nid: 0\n\nid: 1\r\nevent: a\r\ndata: ä\r\ndata:  b\r\n\r\ndata\n\nid: 2\ndata: {}\n\ndata: unfinished\n";
  const events = [
    { id: "0", event: undefined, data: undefined },
    { id: "1", event: "a", data: "ä\n b" },
    { id: undefined, event: undefined, data: "" },
    { id: "2", event: undefined, data: "{}" },
  ];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(), { maxLength: 20 }), async (cuts) => {
      expect(await read(text, cuts)).toEqual(events);
    }),
  );
});

function stream(...cursors: readonly string[]): ScriptedAnswer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const cursor of cursors) {
      response.write(
        `id: ${cursor}\ndata: ${JSON.stringify({ cursor, type: "x", sandbox_id: "s", data: { a_b: 1 } })}\n\n`,
      );
    }
    setImmediate(() => response.destroy());
  };
}

test("a stream that breaks is resumed at its cursor", async () => {
  const server = await scriptedServer(stream("1", "2"), "hang up", stream("3"), stream("4"));
  const seen: string[] = [];
  for await (const event of new Sandboxer({ url: server.url, retry: { firstDelayMs: 1 } }).events({ sandboxId: "s" })) {
    expect(event).toMatchObject({ sandboxId: "s", data: { a_b: 1 } });
    seen.push(event.cursor);
    if (event.cursor === "4") break;
  }
  expect(seen).toEqual(["1", "2", "3", "4"]);
  expect(server.requests.map(({ path }) => new URL(path, server.url).searchParams.get("cursor"))).toEqual([
    null,
    "2",
    "2",
    "3",
  ]);
  expect(server.requests[0]?.headers.accept).toBe("text/event-stream");
});

test("events that happen while the first connection is down are not missed", async () => {
  const beginning: ScriptedAnswer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("retry: 1000\nid: 7\n\n");
    setImmediate(() => response.destroy());
  };
  const server = await scriptedServer(beginning, stream("8"));
  const { value } = await new Sandboxer({ url: server.url, retry: { firstDelayMs: 1 } }).events().next();
  expect(value?.cursor).toBe("8");
  expect(server.requests[1]?.path).toContain("cursor=7");
});

test("a refusal ends the stream, and so does a signal", async () => {
  const refusing = await scriptedServer(failure(401, "unauthorized"));
  await expect(new Sandboxer({ url: refusing.url }).events().next()).rejects.toMatchObject({ code: "unauthorized" });
  const silent = await scriptedServer((response) => response.writeHead(200).flushHeaders());
  const abort = new AbortController();
  const next = new Sandboxer({ url: silent.url }).events({ signal: abort.signal }).next();
  abort.abort(new Error("enough"));
  await expect(next).rejects.toThrow("enough");
});
