import { rmSync, writeFileSync } from "node:fs";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { KeyFile, keyFilePath, type NewKey } from "../../../src/gateway/access/key-file.ts";
import { PeerSecret } from "../../../src/gateway/access/peer-secret.ts";
import { openAccess, type Access } from "../../../src/gateway/access/open-access.ts";
import { requireScope } from "../../../src/gateway/access/principal.ts";
import { FakeClock } from "../../lease/fake-clock.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

interface Setting extends Access {
  readonly clock: FakeClock;
  readonly file: KeyFile;
  /** The caller of a request with these headers. */
  readonly who: (headers?: Record<string, string>) => string;
  /** A new key that the server has noticed. */
  readonly create: (key: NewKey) => ReturnType<KeyFile["create"]>;
}

async function access(
  options: { apiKeys?: string[]; loopbackOnly?: boolean; keyHeader?: string } = {},
  secret = "shared",
): Promise<Setting> {
  const clock = new FakeClock();
  const file = new KeyFile(await temporaryFolder(), clock);
  const opened = openAccess({
    apiKeys: [],
    loopbackOnly: true,
    rateLimit: 0,
    keyFile: file.path,
    clock,
    log: pino({ level: "silent" }),
    fleet: () => ({ peerSecret: new PeerSecret(Buffer.alloc(32, secret)), records: undefined, servers: () => 1 }),
    ...options,
  });
  const create = async (key: NewKey) => {
    const created = await file.create(key);
    clock.advance(1_000);
    return created;
  };
  const who: Setting["who"] = (headers = {}) => opened.gate.authenticator.authenticate({ headers }).id;
  return { ...opened, clock, file, create, who };
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe("the caller", () => {
  test("without keys: everyone on loopback, nobody elsewhere", async () => {
    expect((await access()).who()).toBe("anonymous");
    expect((await access({ loopbackOnly: false })).who()).toBe("none");
  });

  test("a key of the environment, which may do everything", async () => {
    const { who, gate } = await access({ apiKeys: ["one", "two"] });
    expect([who(), who(bearer("three")), who(bearer("one ")), who(bearer("two"))]).toEqual([
      "none",
      "none",
      "environment:1",
      "environment:2",
    ]);
    expect(gate.authenticator.authenticate({ headers: bearer("one") }).scopes).toEqual(["read", "use", "admin"]);
  });

  test("a key in the header that is named for keys, and nowhere else where a proxy's token may be", async () => {
    const { who } = await access({ apiKeys: ["one"], keyHeader: "x-key" });
    expect([who({ "x-key": "one" }), who({ "x-key": "Bearer one" }), who({ "sandboxer-key": "one" })]).toEqual(
      Array(3).fill("environment:1"),
    );
    expect([who(bearer("one")), who({ "x-api-key": "one" })]).toEqual(["none", "none"]);
    expect(who({ ...bearer("a token of the proxy's"), "x-key": "one" })).toBe("environment:1");
    expect((await access({ apiKeys: ["one"] })).who({ "x-key": "one" })).toBe("none");
  });

  test("a stored key, in every place where it may be", async () => {
    const { who, create } = await access();
    const { text, record } = await create({ name: "ci", scope: "use" });
    const id = `key:${record.id}`;
    expect(who(bearer(text))).toBe(id);
    expect(who({ authorization: `bearer   ${text}` })).toBe(id);
    expect(who({ "x-api-key": text })).toBe(id);
    const offer = `sandboxer.bearer.${Buffer.from(text).toString("base64url")}`;
    expect(who({ "sec-websocket-protocol": `sandboxer.v1, ${offer}` })).toBe(id);
    expect(who({ "sec-websocket-protocol": offer })).toBe(id);
  });

  test("a stored key that differs by a little is refused", async () => {
    const { who, file, create } = await access();
    const { text } = await create({ name: "ci", scope: "use" });
    const { text: other } = await create({ name: "other", scope: "use" });
    const secret = text.slice(17);
    const wrong = [
      secret,
      `sbx__${secret}`,
      other.slice(0, 17) + secret,
      text.slice(0, -1),
      `${text}0`,
      text.toUpperCase(),
    ];
    expect(wrong.map((each) => who(bearer(each)))).toEqual(wrong.map(() => "none"));
    const [record] = file.list();
    expect(who(bearer(record?.sha256 ?? ""))).toBe("none");
  });
});

describe("the file of a running server", () => {
  test("a new key works at once, and from then on a key is needed", async () => {
    const { who, file, create } = await access();
    expect(who()).toBe("anonymous");
    const { text, record } = await create({ name: "ci", scope: "read" });
    expect([who(), who(bearer(text))]).toEqual(["none", `key:${record.id}`]);
    const second = await file.create({ name: "second", scope: "read" });
    expect(who(bearer(second.text))).toBe(`key:${second.record.id}`);
  });

  test("a revoked key is refused a second later, and its session with it", async () => {
    const { who, file, gate, clock, create } = await access();
    const { text } = await create({ name: "ci", scope: "read" });
    const { principal, setCookie } = gate.authenticator.login({ headers: bearer(text) });
    const cookie = setCookie?.split(";")[0] ?? "";
    expect(who({ cookie })).toBe(principal.id);
    await file.revoke(principal.id.slice("key:".length));
    clock.advance(1_000);
    expect([who(bearer(text)), who({ cookie }), gate.authenticator.isCurrent(principal)]).toEqual([
      "none",
      "none",
      false,
    ]);
  });

  test("an expired key is refused", async () => {
    const { who, clock, create } = await access();
    const { text, record } = await create({ name: "ci", scope: "read", expiresInMs: 60_000 });
    clock.advance(58_999);
    expect(who(bearer(text))).toBe(`key:${record.id}`);
    clock.advance(1);
    expect(who(bearer(text))).toBe("none");
  });

  test.each<[string, (setting: Setting) => Promise<void> | void]>([
    ["its last key is revoked", async ({ file }) => void (await file.revoke(file.list()[0]?.id ?? ""))],
    ["it is removed", ({ file }) => rmSync(file.path)],
    ["it is damaged", ({ file }) => writeFileSync(file.path, "{")],
  ])("when %s, nobody gets in, and keys of the environment go on", async (_what, change) => {
    const setting = await access();
    const { text } = await setting.create({ name: "ci", scope: "admin" });
    expect(setting.who(bearer(text))).not.toBe("none");
    await change(setting);
    setting.clock.advance(1_000);
    expect([setting.who(), setting.who(bearer(text))]).toEqual(["none", "none"]);
    const fromEnvironment = await access({ apiKeys: ["one"] });
    await fromEnvironment.create({ name: "ci", scope: "admin" });
    await change(fromEnvironment);
    fromEnvironment.clock.advance(1_000);
    expect(fromEnvironment.who(bearer("one"))).toBe("environment:1");
  });

  test("a damaged one keeps a server from starting", async () => {
    const folder = await temporaryFolder();
    writeFileSync(keyFilePath(folder), "{");
    const options = { apiKeys: [], loopbackOnly: true, rateLimit: 0, keyFile: keyFilePath(folder) };
    expect(() => openAccess({ ...options, clock: new FakeClock(), log: pino({ level: "silent" }) })).toThrow(
      /not JSON/,
    );
  });
});

describe("sessions", () => {
  test("a login sets a cookie that scripts and other sites cannot use; it expires after 12 hours, or at logout", async () => {
    const { who, gate, clock } = await access({ apiKeys: ["one"] });
    const login = () =>
      gate.authenticator.login({ headers: { ...bearer("one"), origin: "https://host" } }).setCookie ?? "";
    const cookie = login();
    expect(cookie).toMatch(
      /^__Host-sandboxer_session=[\w-]{100,400}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/,
    );
    const pair = `theme=dark; ${cookie.split(";")[0] ?? ""}`;
    expect(who({ cookie: pair })).toBe("environment:1");
    clock.advance(12 * 3_600_000);
    expect(who({ cookie: pair })).toBe("none");
    const second = login().split(";")[0] ?? "";
    const { removeCookie, ended } = gate.authenticator.logout({ headers: { cookie: second } });
    await ended;
    expect(removeCookie).toMatch(/^sandboxer_session=;.*Max-Age=0/);
    expect(who({ cookie: second })).toBe("none");
  });

  test("a login needs a key; a server without keys sets no cookie", async () => {
    const closed = await access({ apiKeys: ["one"] });
    expect(() => closed.gate.authenticator.login({ headers: bearer("two") })).toThrow(
      expect.objectContaining({ code: "unauthorized" }),
    );
    expect((await access()).gate.authenticator.login({ headers: {} }).setCookie).toBeUndefined();
  });

  test("a session works at every server with the same secret and key, and its cookie does not show the key", async () => {
    const keys = { apiKeys: ["a-secret-key"] };
    const { gate } = await access(keys);
    const cookie = gate.authenticator.login({ headers: bearer("a-secret-key") }).setCookie?.split(";")[0] ?? "";
    expect((await access(keys)).who({ cookie })).toBe("environment:1");
    expect((await access({ apiKeys: ["another"] })).who({ cookie })).toBe("none");
    expect((await access(keys, "another store")).who({ cookie })).toBe("none");
    const text = cookie.slice(cookie.indexOf("=") + 1);
    expect(Buffer.from(text, "base64url").toString("latin1")).not.toContain("a-secret-key");
    for (const place of [0, 20, text.length - 2]) {
      const changed = text.slice(0, place) + (text[place] === "A" ? "B" : "A") + text.slice(place + 1);
      expect((await access(keys)).who({ cookie: `sandboxer_session=${changed}` })).toBe("none");
    }
  });
});

describe("scopes", () => {
  test.each([
    ["read", ["read"]],
    ["use", ["read", "use"]],
    ["admin", ["read", "use", "admin"]],
  ] as const)("%s allows %j", async (scope, allowed) => {
    const { gate, create } = await access();
    const { text } = await create({ name: "ci", scope });
    const principal = gate.authenticator.authenticate({ headers: bearer(text) });
    for (const needed of ["read", "use", "admin"] as const) {
      const check = (): void => requireScope(principal, needed);
      if ((allowed as readonly string[]).includes(needed)) check();
      else {
        expect(check).toThrow(
          expect.objectContaining({
            code: "permission_denied",
            message: `This needs the scope ${needed}; ci has ${scope}.`,
            details: { needed, has: scope },
          }),
        );
      }
    }
  });

  test("no caller is asked for a key", async () => {
    const { gate } = await access({ apiKeys: ["one"] });
    const principal = gate.authenticator.authenticate({ headers: {} });
    expect(() => requireScope(principal, "read")).toThrow(expect.objectContaining({ code: "unauthorized" }));
  });
});
