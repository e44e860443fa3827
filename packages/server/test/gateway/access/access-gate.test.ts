import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { KeyFile } from "../../../src/gateway/access/key-file.ts";
import { PeerSecret } from "../../../src/gateway/access/peer-secret.ts";
import { openAccess, type AccessOptions } from "../../../src/gateway/access/open-access.ts";
import type { AccessRequest } from "../../../src/gateway/access/shown-credential.ts";
import { FakeClock } from "../../lease/fake-clock.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

function gateWith(options: Partial<AccessOptions>) {
  const clock = new FakeClock();
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  const { gate } = openAccess({
    apiKeys: [],
    keyFile: undefined,
    loopbackOnly: true,
    rateLimit: 0,
    fleet: () => ({ peerSecret: new PeerSecret(Buffer.alloc(32)), records: undefined, servers: () => 1 }),
    clock,
    log,
    ...options,
  });
  /** The id of who is let in, or the code of the error. */
  const outcome = (request: AccessRequest): string => {
    try {
      return gate.admit(request).id;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  return { gate, clock, lines, outcome };
}

const from = (remoteAddress: string, key?: string): AccessRequest => ({
  method: "GET",
  remoteAddress,
  headers: { host: "localhost", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
});

describe("too many requests", () => {
  test("apply per address if there are no keys; the error has the waiting time", () => {
    const { gate, clock, outcome } = gateWith({ rateLimit: 1, rateBurst: 2 });
    const outcomes = ["1.1.1.1", "1.1.1.1", "1.1.1.1", "2.2.2.2"].map((address) => outcome(from(address)));
    expect(outcomes).toEqual(["anonymous", "anonymous", "rate_limited", "anonymous"]);
    expect(() => gate.admit(from("1.1.1.1"))).toThrow(
      expect.objectContaining({
        details: { retry_after_seconds: 1 },
        row: expect.objectContaining({ httpStatus: 429 }),
      }),
    );
    clock.advance(1_000);
    expect(outcome(from("1.1.1.1"))).toBe("anonymous");
  });

  test("apply per key, from any address; callers without a key do not use them up", () => {
    const { outcome } = gateWith({ apiKeys: ["one", "two"], rateLimit: 1, rateBurst: 1 });
    expect([outcome(from("1.1.1.1")), outcome(from("1.1.1.1"))]).toEqual(["none", "rate_limited"]);
    expect(outcome(from("1.1.1.1", "one"))).toBe("environment:1");
    expect(outcome(from("2.2.2.2", "one"))).toBe("rate_limited");
    expect(outcome(from("2.2.2.2", "two"))).toBe("environment:2");
  });

  test("without a limit there are never too many", () => {
    const { outcome } = gateWith({ rateLimit: 0 });
    const outcomes = Array.from({ length: 5_000 }, () => outcome(from("1.1.1.1")));
    expect(new Set(outcomes)).toEqual(new Set(["anonymous"]));
  });
});

describe("wrong keys", () => {
  test("are limited to ten, even without a rate limit; then not even the right one is checked", () => {
    const { outcome, clock } = gateWith({ apiKeys: ["right"] });
    const guesses = Array.from({ length: 12 }, (_, number) => outcome(from("1.1.1.1", `guess ${number}`)));
    expect(guesses).toEqual([...Array.from({ length: 10 }, () => "none"), "rate_limited", "rate_limited"]);
    expect(outcome(from("1.1.1.1", "right"))).toBe("rate_limited");
    expect(outcome(from("2.2.2.2", "right"))).toBe("environment:1");
    expect(outcome(from("1.1.1.1"))).toBe("none");
    clock.advance(6_000);
    expect(outcome(from("1.1.1.1", "right"))).toBe("environment:1");
  });

  test("from others behind the same address do not lock out a stored key", async () => {
    const file = new KeyFile(await temporaryFolder());
    const { text, record } = await file.create({ name: "ci", scope: "read" });
    const { outcome } = gateWith({ keyFile: file.path, clock: new FakeClock() });
    for (let guess = 0; guess < 20; guess++) outcome(from("1.1.1.1", `guess ${guess}`));
    expect(outcome(from("1.1.1.1", "another guess"))).toBe("rate_limited");
    const wrong = text.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    expect(outcome(from("1.1.1.1", wrong))).toBe("rate_limited");
    expect(outcome(from("1.1.1.1", text))).toBe(`key:${record.id}`);
  });

  test("are logged with their origin, and without their content", () => {
    const { outcome, lines } = gateWith({ apiKeys: ["right"] });
    outcome(from("203.0.113.9", "hunter2"));
    outcome(from("203.0.113.9"));
    expect(lines).toMatchObject([
      {
        audit: true,
        who: "none",
        what: "authenticate",
        outcome: "refused",
        code: "unauthorized",
        address: "203.0.113.9",
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });
});

describe("browsers", () => {
  const request = (method: string, headers: Record<string, string>): AccessRequest => ({
    method,
    remoteAddress: "127.0.0.1",
    headers: { host: "localhost:8080", ...headers },
  });

  test("pages of other origins and names that were made to point here are refused", () => {
    const { outcome } = gateWith({});
    expect(outcome(request("GET", {}))).toBe("anonymous");
    expect(outcome(request("POST", { origin: "http://localhost:8080" }))).toBe("anonymous");
    expect(outcome(request("POST", { origin: "https://evil.example" }))).toBe("permission_denied");
    expect(outcome(request("GET", { host: "evil.example" }))).toBe("permission_denied");
  });

  test("a change with a session's cookie needs the origin; reading does not", () => {
    const { gate, outcome } = gateWith({ apiKeys: ["one"] });
    const login = gate.authenticator.login({ headers: { authorization: "Bearer one" } });
    const cookie = login.setCookie?.split(";")[0] ?? "";
    const origin = "http://localhost:8080";
    expect(outcome(request("GET", { cookie }))).toBe("environment:1");
    expect(outcome(request("POST", { cookie }))).toBe("permission_denied");
    expect(outcome(request("GET", { cookie, upgrade: "websocket" }))).toBe("permission_denied");
    expect(outcome(request("POST", { cookie, origin: "http://localhost:8081" }))).toBe("permission_denied");
    expect(outcome(request("POST", { cookie, origin }))).toBe("environment:1");
    expect(outcome(request("POST", { authorization: "Bearer one" }))).toBe("environment:1");
  });
});
