import { ERRORS, SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { PeerSecret } from "../../../src/gateway/access/peer-secret.ts";
import { apiKeyOf } from "../../../src/gateway/e2b/api-key.ts";
import { metadataFilter } from "../../../src/gateway/e2b/control/list.ts";
import { networkOf } from "../../../src/gateway/e2b/control/network.ts";
import { snapshotName } from "../../../src/gateway/e2b/control/templates.ts";
import { E2bRouter } from "../../../src/gateway/e2b/e2b-router.ts";
import { e2bErrorAnswer, notRunning } from "../../../src/gateway/e2b/errors.ts";
import { E2bTokens } from "../../../src/gateway/e2b/tokens.ts";
import { PreviewAddresses } from "../../../src/gateway/preview/preview-address.ts";
import { withHome } from "../../../src/manager/files/give-home.ts";

const ID = "3f2a9c01-0000-4000-8000-000000000001";

test("requests are led to the control plane, to envd, to the interpreter and to ports", () => {
  const addresses = new PreviewAddresses({ domain: "https://sandboxes.example", ownPort: () => 8080 });
  const router = new E2bRouter(addresses);
  const routed = (url: string, headers: Record<string, string> = {}): string | undefined => {
    const request = { url, headers: { host: "127.0.0.1:8080", ...headers } } as unknown as IncomingMessage;
    return router.takes(request) ? router.rewrite(request) : undefined;
  };
  const named = (port?: string): Record<string, string> => ({
    "e2b-sandbox-id": ID,
    ...(port === undefined ? {} : { "e2b-sandbox-port": port }),
  });
  expect(routed("/e2b/v2/sandboxes?limit=1")).toBe("/e2b/v2/sandboxes?limit=1");
  expect(routed("/v2/sandboxes", { host: "api.sandboxes.example" })).toBe("/e2b/v2/sandboxes");
  expect(routed("/e2b/files?path=a", named("49983"))).toBe("/internal/e2b/envd/files?path=a");
  expect(routed("/e2b/health", named())).toBe("/internal/e2b/envd/health");
  expect(routed("/e2b/execute", named("49999"))).toBe("/internal/e2b/interpreter/execute");
  expect(routed("/e2b/a/b", named("3000"))).toBe("/internal/e2b/port");
  expect(routed("/e2b/a/b", named("nothing"))).toBe("/internal/e2b/port");
  expect(routed("/health", { host: `49983-${ID}.sandboxes.example` })).toBe("/internal/e2b/envd/health");
  expect(routed("/execute", { host: `49999-${ID}.localhost:8080` })).toBe("/internal/e2b/interpreter/execute");
  expect(routed("/files?path=a&signature=v1_x")).toBe("/internal/e2b/envd/files?path=a&signature=v1_x");
  expect(routed("/e2b/files?signature=v1_x")).toBe("/internal/e2b/envd/files?signature=v1_x");
  const others = ["/e2bx", "/sandboxes", "/files?path=a", "/v1/sandboxes"];
  expect(others.map((url) => routed(url))).toEqual(others.map(() => undefined));
  expect(routed("/", { host: `3000-${ID}.sandboxes.example` })).toBe(undefined);
  expect(routed("/e2b/v2/sandboxes", { host: "other.sandboxes.example" })).toBe(undefined);
});

test("every error has E2B's shape, and tells clients whether to repeat the call", () => {
  const statuses: Partial<Record<ErrorCode, number>> = {
    bad_request: 400,
    too_large: 400,
    not_supported: 400,
    unauthorized: 401,
    permission_denied: 403,
    sandbox_destroyed: 404,
    snapshot_not_found: 404,
    stale_epoch: 409,
    wrong_state: 409,
    limit_reached: 429,
    image_damaged: 500,
    store_unavailable: 503,
  };
  for (const [code, status] of Object.entries(statuses)) {
    const answer = e2bErrorAnswer(new SandboxerError(code as ErrorCode, "It failed."));
    expect(answer).toMatchObject({ status, body: { code: status, error_code: code } });
  }
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const { status, headers } = e2bErrorAnswer(new SandboxerError(code, "It failed."));
    const mayRepeat = status < 500 || code === "starting" || code === "draining";
    expect([code, headers["should-retry"]]).toEqual([code, mayRepeat ? undefined : "false"]);
  }
  const limited = new SandboxerError("rate_limited", "Too many.", { details: { retry_after_seconds: 1.2 } });
  expect(e2bErrorAnswer(limited).headers).toEqual({ "retry-after": "2" });
  expect(e2bErrorAnswer(new Error("secret path"))).toMatchObject({ status: 500 });
  const missing = { sandboxId: ID, message: "The sandbox was not found", code: 502 };
  expect(e2bErrorAnswer(notRunning(ID)).body).toEqual(missing);
});

test("tokens are stable, and different for each sandbox and kind", () => {
  const tokens = (): E2bTokens => new E2bTokens(() => new PeerSecret(Buffer.alloc(32, 1)));
  const other = ID.replace("3f", "4f");
  const all = [tokens().of("envd", ID), tokens().of("traffic", ID), tokens().of("envd", other)];
  expect(new Set(all).size).toBe(3);
  expect(tokens().isToken("envd", ID, all[0])).toBe(true);
  for (const wrong of [undefined, "", all[1], all[2], [all[0] ?? ""], `${all[0]} `]) {
    expect(tokens().isToken("envd", ID, wrong)).toBe(false);
  }
  expect(() => new E2bTokens(() => undefined).of("envd", ID)).toThrow(/starting/);
});

test("a key is accepted unchanged, or in hex after e2b_", () => {
  const key = "sbx_0123456789ab_secret";
  expect(apiKeyOf({ "x-api-key": key })).toBe(key);
  expect(apiKeyOf({ "x-api-key": `e2b_${Buffer.from(key).toString("hex")}` })).toBe(key);
  // The bytes are no text, so it is no key in hex.
  expect(apiKeyOf({ "x-api-key": "e2b_00ff" })).toBe("e2b_00ff");
  expect(apiKeyOf({ "x-api-key": "e2b_abc" })).toBe("e2b_abc");
  expect(apiKeyOf({})).toBe(undefined);
});

test("network options become a policy, or are refused", () => {
  expect(networkOf({})).toBe(undefined);
  expect(networkOf({ allowOut: [], denyOut: null, rules: {} })).toBe(undefined);
  expect(networkOf({ allow_internet_access: true })).toBe("open");
  expect(networkOf({ allow_internet_access: false })).toBe("none");
  expect(networkOf({ denyOut: ["0.0.0.0/0"] })).toBe("none");
  expect(networkOf({ denyOut: ["0.0.0.0/0", "10.0.0.1"], allowOut: ["*.example.com", "1.1.1.1"] })).toEqual({
    allow: ["*.example.com", "1.1.1.1"],
  });
  expect(networkOf({ denyOut: ["10.0.0.0/8"] })).toEqual({ deny: ["10.0.0.0/8"] });
  expect(networkOf({ denyOut: ["::/0"] })).toEqual({ deny: ["::/0"] });
  expect(networkOf({ allowOut: ["1.1.1.1"] })).toBe("open");
  expect(() => networkOf({ allowOut: ["example.com"] })).toThrow(/denyOut/);
  expect(() => networkOf({ allowOut: ["1.1.1.1"], denyOut: ["1.0.0.0/8"] })).toThrow(/0\.0\.0\.0/);
  expect(() => networkOf({ denyOut: ["not a host"] })).toThrow(/is not a domain/);
  for (const option of ["rules", "egressProxy", "dnsServers", "httpsPorts", "maskRequestHost", "ofTomorrow"]) {
    expect(() => networkOf({ [option]: { a: 1 } })).toThrow(option);
  }
});

test("the metadata of a query is decoded as often as clients encode it", () => {
  const [, query = ""] = "metadata=a%252520b%3Dc%25253Dd".split("=", 2);
  expect(metadataFilter(decodeURIComponent(query))).toEqual([["a b", "c=d"]]);
  expect(metadataFilter("a=1&b=2")).toEqual([
    ["a", "1"],
    ["b", "2"],
  ]);
  expect(metadataFilter("")).toEqual([]);
  expect(() => metadataFilter("a=%25")).toThrow(/encoded/);
});

test("a snapshot is named with or without a team and the default tag", () => {
  expect(["ready", "ready:default", "team/ready", "team/ready:default"].map(snapshotName)).toEqual(
    Array.from({ length: 4 }, () => "ready"),
  );
  expect(["a:b", "../x", "", "a/b/c", "-x"].map(snapshotName)).toEqual(Array.from({ length: 5 }, () => undefined));
});

test("a user gets a home in /etc/passwd, whatever the file contains", () => {
  const user = { name: "user", uid: 1000, gid: 1000, home: "/home/user", mode: 0o755 };
  const entry = "user:*:1000:1000:user:/home/user:/bin/sh\n";
  expect(withHome("", user)).toBe(entry);
  const node = "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/bash\n";
  expect(withHome(node, user)).toBe(entry + node);
  const own = "root:x:0:0:root:/:/bin/sh\nuser:x:1001:1002:me:/workspace:/bin/bash\n";
  expect(withHome(own, user)).toBe(own.replace("/workspace", "/home/user"));
  expect(withHome("user\n", user)).toBe(`${entry}user\n`);
  expect(withHome("user:\n", user)).toBe("user::1000:1000:user:/home/user:/bin/sh\n");
});
