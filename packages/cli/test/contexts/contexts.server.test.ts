import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";
import { startCli } from "../support/run-cli.ts";

let folder: string;
let server: Server;
let url: string;
/** The received Authorization headers. */
let shown: (string | undefined)[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "contexts-"));
  shown = [];
  server = createServer((request, response) => {
    shown.push(request.headers.authorization);
    response.setHeader("content-type", "application/json").end('{"items":[],"next_cursor":null}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

async function run(argv: string[], env: Record<string, string> = {}) {
  const io = fakeIo({ XDG_CONFIG_HOME: folder, ...env }, { workingDirectory: folder, homeDirectory: folder });
  const code = await runProgram(argv, io);
  return { code, out: io.out(), err: io.err() };
}

const configFile = (): string => join(folder, "sandboxer", "config.yaml");

test("add, use, list and rm keep everything else in the file, including comments", async () => {
  mkdirSync(join(folder, "sandboxer"));
  writeFileSync(configFile(), "# mine\nport: 9000 # why not\n");
  expect(await run(["context", "add", "prod", "--server", url, "--key-env", "PROD_KEY"])).toMatchObject({
    code: 0,
    out: "prod\n",
  });
  expect((await run(["context", "add", "local", "--server", "http://127.0.0.1:8080", "--use"])).code).toBe(0);
  expect((await run(["context", "list"])).out.replaceAll(/ +/g, " ")).toBe(
    ` NAME URL KEY\n prod ${url} variable PROD_KEY\n* local http://127.0.0.1:8080 none\n`,
  );
  expect((await run(["context", "use", "prod"])).out).toBe("prod\n");
  expect(JSON.parse((await run(["context", "list", "--json"])).out)).toMatchObject({ current: "prod" });
  expect(await run(["context", "use", "prdo"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Did you mean prod?"),
  });
  expect((await run(["context", "add", "prod", "--server", url])).code).toBe(2);
  expect((await run(["context", "rm", "prod"])).out).toBe("prod\n");
  const text = readFileSync(configFile(), "utf8");
  expect(text).toContain("# mine\nport: 9000 # why not\n");
  expect(text).not.toContain("prod");
  expect(statSync(configFile()).mode & 0o077).toBe(0);
});

describe("the key", () => {
  test.each(["file", "variable", "command"])("of a context comes from a %s, for its server only", async (source) => {
    writeFileSync(join(folder, "key"), "s3cret\n", { mode: 0o600 });
    const flags =
      {
        file: ["--key-file", "key"],
        variable: ["--key-env", "THE_KEY"],
        command: ["--key-command", `cat ${join(folder, "key")}`],
      }[source] ?? [];
    await run(["context", "add", "prod", "--server", url, ...flags, "--use"]);
    expect(readFileSync(configFile(), "utf8")).not.toContain("s3cret");
    expect((await run(["ls"], { THE_KEY: "s3cret", PATH: process.env["PATH"] ?? "" })).code).toBe(0);
    expect(shown).toEqual(["Bearer s3cret"]);
  });

  test("of a context is not sent to another server", async () => {
    await run(["context", "add", "prod", "--server", "http://127.0.0.1:1", "--key-env", "THE_KEY", "--use"]);
    expect((await run(["ls", "--url", url], { THE_KEY: "s3cret" })).code).toBe(0);
    expect((await run(["ls"], { THE_KEY: "s3cret", SANDBOXER_URL: url })).code).toBe(0);
    expect(shown).toEqual([undefined, undefined]);
  });

  test("of --api-key-file wins over the environment, and that over the context", async () => {
    writeFileSync(join(folder, "key"), "from-file\n");
    await run(["context", "add", "prod", "--server", url, "--key-env", "THE_KEY", "--use"]);
    await run(["ls"], { THE_KEY: "from-context", SANDBOXER_API_KEY: "from-environment" });
    await run(["ls", "--api-key-file", "key"], { THE_KEY: "x", SANDBOXER_API_KEY: "from-environment" });
    expect(shown).toEqual(["Bearer from-environment", "Bearer from-file"]);
  });

  test("that cannot be read is an error that does not show the key", async () => {
    await run(["context", "add", "prod", "--server", url, "--key-command", "false", "--use"]);
    const failed = await run(["ls"], { PATH: process.env["PATH"] ?? "" });
    expect(failed).toMatchObject({ code: 10, err: expect.stringContaining('key of context "prod"') });
    writeFileSync(join(folder, "key"), "two\nlines\n");
    expect((await run(["ls", "--api-key-file", "key", "--url", url])).code).toBe(2);
    expect((await run(["ls", "--api-key-file", "nosuch", "--url", url])).code).toBe(2);
    expect(shown).toEqual([]);
  });

  test("has no flag", async () => expect((await run(["ls", "--api-key", "x"])).code).toBe(2));
});

test("flags override SANDBOXER_URL, that SANDBOXER_CONTEXT, and that the current context; both flags are refused", async () => {
  await run(["context", "add", "here", "--server", url]);
  await run(["context", "add", "nowhere", "--server", "http://127.0.0.1:1", "--use"]);
  expect((await run(["ls"])).code).toBe(10);
  expect((await run(["ls"], { SANDBOXER_CONTEXT: "here" })).code).toBe(0);
  expect((await run(["ls"], { SANDBOXER_CONTEXT: "nowhere", SANDBOXER_URL: url })).code).toBe(0);
  expect((await run(["ls", "--context", "here"], { SANDBOXER_URL: "http://127.0.0.1:1" })).code).toBe(0);
  expect((await run(["--url", url, "ls"], { SANDBOXER_URL: "http://127.0.0.1:1" })).code).toBe(0);
  expect((await run(["ls", "--context", "here", "--url", url])).code).toBe(2);
  expect((await run(["ls", "--context", "nosuch"])).code).toBe(2);
  expect((await run(["ls", "--url", "ftp://x"])).code).toBe(2);
});

test("without a server, the error explains how to start one", async () => {
  const failed = await run(["ls", "--url", "http://127.0.0.1:1"]);
  expect(failed).toMatchObject({ code: 10, out: "" });
  expect(failed.err).toMatch(
    /^sandboxer: No answer from http:\/\/127\.0\.0\.1:1.*\n {2}Start a server with `npx @sandboxer\/cli serve`/,
  );
  const json = await run(["ls", "--json", "--url", "http://127.0.0.1:1"]);
  expect(JSON.parse(json.out)).toMatchObject({ error: { code: "server_unreachable", retryable: true } });
});

test("an invalid file is an error with its path", async () => {
  mkdirSync(join(folder, "sandboxer"));
  writeFileSync(configFile(), "contexts: { a: { url: 5 } }\ncurrent_context: a\n");
  expect(await run(["ls"])).toMatchObject({ code: 2, err: expect.stringContaining("contexts.a.url") });
  writeFileSync(configFile(), "contexts: [\n");
  expect(await run(["ls"])).toMatchObject({ code: 2, err: expect.stringContaining("config.yaml") });
});

test("contexts are read from TOML too, and not written to it", async () => {
  mkdirSync(join(folder, "sandboxer"));
  writeFileSync(join(folder, "sandboxer", "config.toml"), `current_context = "a"\n[contexts.a]\nurl = "${url}"\n`);
  expect((await run(["ls"])).code).toBe(0);
  expect(shown).toHaveLength(1);
  expect(await run(["context", "add", "b", "--server", url])).toMatchObject({
    code: 2,
    err: expect.stringContaining("TOML"),
  });
});

test("a server with keys refuses callers without one", async () => {
  const cli = await startCli({ apiKeys: ["k".repeat(32)] });
  expect((await cli(["ls"])).code).toBe(0);
  expect((await cli(["ls"], { env: { SANDBOXER_API_KEY: "wrong" } })).code).toBe(3);
  expect(await cli(["create", "--json"], { env: { SANDBOXER_API_KEY: "" } })).toMatchObject({ code: 3 });
  await cli.id(["create", "--name", "web"]);
  expect((await cli(["exec", "web", "--", "echo", "with a key"])).out).toBe("with a key\n");
});
