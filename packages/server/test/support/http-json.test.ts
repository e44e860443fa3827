import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { retryAfter, type HttpFailure } from "../../src/support/http-failure.ts";
import { HttpJson, type HttpJsonOptions } from "../../src/support/http-json.ts";
import { joinUrl, withQuery } from "../../src/support/join-url.ts";
import { quoteForShell } from "../../src/support/shell-quote.ts";

const schema = z.object({ n: z.number() });
const SECRET = "dtn_a-very-secret-key";

describe("calls to vendors' APIs", () => {
  let server: Server;
  let answers: { status: number; body?: string; headers?: Record<string, string>; hang?: boolean }[];
  let seen: { method: string; url: string; authorization: string | undefined; body: string }[];
  const slept: number[] = [];

  beforeEach(async () => {
    [answers, seen, slept.length] = [[], [], 0];
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method = "", url = "", headers } = request;
        seen.push({ method, url, authorization: headers.authorization, body: Buffer.concat(chunks).toString() });
        // A late request that its caller has aborted takes no answer from another.
        if (url.endsWith("/never")) return;
        const { status, body = "", headers: own = {}, hang } = answers.shift() ?? { status: 200, body: '{"n":1}' };
        if (hang !== true) response.writeHead(status, own).end(body);
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  function open(overrides: Partial<HttpJsonOptions> = {}): HttpJson {
    return new HttpJson({
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`,
      headers: () => Promise.resolve({ authorization: `Bearer ${SECRET}` }),
      explain: (failure) => failure,
      clock: {
        wallMs: () => 0,
        monotonicMs: () => 0,
        sleep: (ms) => {
          slept.push(ms);
          return Promise.resolve();
        },
      },
      ...overrides,
    });
  }

  const failureOf = async (call: Promise<unknown>): Promise<HttpFailure> => {
    const failure = await call.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return failure as HttpFailure;
  };

  test("an answer is checked, a body and parameters are sent", async () => {
    const query = { labels: '{"a":"b c"}', cursor: undefined };
    expect(await open().json(schema, { method: "POST", path: "/x/", query, json: { a: 1 } })).toEqual({ n: 1 });
    expect(seen).toEqual([
      {
        method: "POST",
        url: "/api/x?labels=%7B%22a%22%3A%22b+c%22%7D",
        authorization: `Bearer ${SECRET}`,
        body: '{"a":1}',
      },
    ]);
  });

  test("bytes are streamed, and never sent twice", async () => {
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("one ");
      yield Buffer.from("two");
    }
    answers = [{ status: 503 }, { status: 200 }];
    const call = open().send({ method: "POST", path: "x", bytes: pieces(), idempotent: true });
    expect((await failureOf(call)).facts.status).toBe(503);
    await open().send({ method: "POST", path: "x", bytes: Buffer.from("three") });
    expect(seen.map(({ body }) => body)).toEqual(["one two", "three"]);
  });

  test("reads are repeated after temporary failures, after the delay that the server requests", async () => {
    answers = [{ status: 503 }, { status: 429, headers: { "retry-after": "3" } }];
    expect(await open().json(schema, { method: "GET", path: "x" })).toEqual({ n: 1 });
    expect(seen).toHaveLength(3);
    expect(slept[0]).toBeLessThanOrEqual(250);
    expect(slept[1]).toBeGreaterThanOrEqual(3000);
    expect(slept[1]).toBeLessThan(3500);
  });

  test("calls are not repeated if they must not be, would wait too long, or were repeated often enough", async () => {
    answers = [{ status: 503 }];
    expect((await failureOf(open().json(schema, { method: "POST", path: "x" }))).facts.status).toBe(503);
    answers = [{ status: 404 }];
    expect((await failureOf(open().json(schema, { method: "GET", path: "x" }))).facts.status).toBe(404);
    answers = [{ status: 429, headers: { "retry-after": "3600" } }];
    expect((await failureOf(open().json(schema, { method: "GET", path: "x" }))).facts.retryAfterMs).toBe(3_600_000);
    expect(seen).toHaveLength(3);
    answers = Array.from({ length: 9 }, () => ({ status: 500 }));
    await failureOf(open({ attempts: 2 }).send({ method: "POST", path: "x", idempotent: true }));
    expect(seen).toHaveLength(5);
  });

  test("a timeout, a missing server, a broken answer and a redirect are failures", async () => {
    const late = await failureOf(open({ timeoutMs: 50, attempts: 1 }).json(schema, { method: "GET", path: "never" }));
    expect(late.facts.timedOut).toBe(true);
    const nobody = await failureOf(
      open({ baseUrl: "http://127.0.0.1:1", attempts: 1 }).json(schema, { method: "GET", path: "x" }),
    );
    expect(nobody.message).toContain("GET x failed");
    answers = [
      { status: 200, body: "<html>" },
      { status: 200, body: '{"n":"1"}' },
    ];
    expect((await failureOf(open().json(schema, { method: "GET", path: "x" }))).message).toContain("not JSON");
    expect((await failureOf(open().json(schema, { method: "GET", path: "x" }))).message).toContain("at n:");
    answers = [{ status: 302, headers: { location: "http://127.0.0.1:1/" } }];
    expect((await failureOf(open({ attempts: 1 }).send({ method: "GET", path: "x" }))).name).toBe("HttpFailure");
  });

  test("an aborted caller gets its own reason, at once and while it waits", async () => {
    const controller = new AbortController();
    answers = [{ status: 200, hang: true }];
    const call = open().json(schema, { method: "GET", path: "x", signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });

  test("a failure has the server's message, shortened, and neither key nor parameters", async () => {
    answers = [{ status: 400, body: JSON.stringify({ message: ["a is wrong", "x".repeat(2000)] }) }];
    const failure = await failureOf(open().json(schema, { method: "GET", path: "x", query: { token: "hidden" } }));
    expect(failure.message).toContain("a is wrong; xxx");
    expect(failure.message.length).toBeLessThan(600);
    expect(JSON.stringify(failure) + String(failure.stack)).not.toMatch(/a-very-secret|hidden/);
  });
});

test("pieces of a URL are joined by one slash", () => {
  expect(joinUrl("https://host/api/", "/sandbox/", "/a/b")).toBe("https://host/api/sandbox/a/b");
  expect(joinUrl("https://host//", "", "x")).toBe("https://host/x");
  expect(withQuery("u", { a: undefined })).toBe("u");
  expect(withQuery("u", { a: true, b: "&" })).toBe("u?a=true&b=%26");
});

test("Retry-After is seconds or a date", () => {
  expect(retryAfter("5", 0)).toBe(5000);
  expect(retryAfter(new Date(9000).toUTCString(), 4000)).toBe(5000);
  expect(retryAfter(null, 0)).toBeUndefined();
  expect(retryAfter("soon", 0)).toBeUndefined();
});

test("text that a shell would change is quoted", () => {
  expect(["plain/1", "", "a b", "it's", "$x"].map(quoteForShell)).toEqual([
    "plain/1",
    "''",
    "'a b'",
    "'it'\\''s'",
    "'$x'",
  ]);
  expect(() => quoteForShell("a\0b")).toThrow("NUL byte");
});
