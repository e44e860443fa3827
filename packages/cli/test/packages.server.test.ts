import { copyFile, cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PUBLIC_PACKAGES } from "../../../scripts/packages/public-package.ts";
import { Outside, PATIENCE_MS } from "./support/outside.ts";

const ROOT = join(import.meta.dirname, "../../..");
const TYPES_CHECKER = join(ROOT, "node_modules/@arethetypeswrong/cli/dist/index.js");
const COMPILER = join(ROOT, "node_modules/typescript/bin/tsc");

let outside: Outside;
beforeAll(async () => {
  outside = await Outside.open();
}, PATIENCE_MS);
afterAll(() => outside.close());

const packed = (name: string) => {
  const found = outside.packages.find((each) => each.name === `@sandboxer/${name}`);
  if (found === undefined) throw new Error(`There is no package ${name}`);
  return found;
};

const names = PUBLIC_PACKAGES.map(({ folder }) => folder);
const imported = PUBLIC_PACKAGES.filter(({ manifest }) => manifest.exports !== undefined).map(({ folder }) => folder);

describe("the tarballs", () => {
  test.each(names)("publint finds nothing wrong with %s", async (name) => {
    const bytes = await readFile(packed(name).tarball);
    const { messages, pkg } = await publint({ pack: { tarball: new Uint8Array(bytes).buffer } });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  test.each(imported)("every import of %s has types", async (name) => {
    const argv = ["node", TYPES_CHECKER, packed(name).tarball, "--profile", "esm-only", "--quiet"];
    // It exits with 1 when there is a problem.
    await expect(outside.run(outside.folder, argv)).resolves.toBe("");
  });

  test("have a README and a license, and no file of this machine", async () => {
    for (const { folder } of outside.packages) {
      expect(await readdir(folder)).toEqual(expect.arrayContaining(["LICENSE", "README.md", "dist", "package.json"]));
      for (const file of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!file.isFile()) continue;
        const text = await readFile(join(file.parentPath, file.name), "latin1");
        expect([file.name, text.includes(ROOT)]).toEqual([file.name, false]);
      }
    }
  });

  test("the SDK for browsers is one file that imports nothing", async () => {
    const folder = await outside.newFolder("browser");
    await copyFile(join(packed("client").folder, "dist/browser.js"), join(folder, "browser.mjs"));
    const program = `import("./browser.mjs").then(({ Sandbox }) => console.log(typeof Sandbox.create))`;
    expect(await outside.run(folder, ["node", "-e", program])).toBe("function\n");
    expect(await readFile(join(folder, "browser.mjs"), "utf8")).not.toMatch(/\bfrom "|\bimport\("/);
  });
});

describe("installed into an empty folder", () => {
  let folder: string;
  let sandboxer: string;
  beforeAll(async () => {
    folder = await outside.newFolder("project");
    sandboxer = join(folder, "node_modules/.bin/sandboxer");
    await writeFile(join(folder, "package.json"), '{ "private": true, "type": "module" }');
    const types = "@types/node";
    await outside.run(folder, ["npm", "install", "@sandboxer/client", "@sandboxer/server", "@sandboxer/cli", types]);
    await cp(join(import.meta.dirname, "outside/program.ts"), join(folder, "program.ts"));
    await cp(join(ROOT, "examples"), join(folder, "examples"), { recursive: true });
    // TypeScript of a program does not run in node_modules, but does beside the program.
    const manifest = (await readFile(join(folder, "examples/extension/manifest.yaml"), "utf8")).replace(
      "/tmp/sandboxer-folders",
      join(folder, "folders"),
    );
    await writeFile(join(folder, "examples/extension/manifest.yaml"), manifest);
  }, PATIENCE_MS);

  const serve = async (): Promise<string> => {
    const extensions = ["--extensions", join(folder, "examples/extension/manifest.yaml")];
    const flags = ["--backend", "fake", "--store", join(folder, "store"), ...extensions];
    return (await outside.serve(folder, [sandboxer], flags)).url;
  };

  test("a TypeScript program compiles strictly, runs against the installed server and uses an extension", async () => {
    const options = "--strict --target es2024 --module nodenext --types node --checkers 1 --outDir compiled";
    await outside.run(folder, ["node", COMPILER, ...options.split(" "), "program.ts"]);
    const url = await serve();
    expect(await outside.run(folder, ["node", "compiled/program.js", url])).toBe(
      "resumed: hello\nlarge file: true\nerror: file_not_found\nextension: from the folder\nleft: 0\n",
    );
  });

  test("a server loads few files, and keeps their compiled code while it runs", async () => {
    const cache = await outside.newFolder("compiled-code");
    await outside.serve(folder, ["env", `NODE_COMPILE_CACHE=${cache}`, sandboxer], ["--backend", "fake"]);
    const files = async () =>
      (await readdir(cache, { recursive: true, withFileTypes: true })).filter((each) => each.isFile());
    await expect.poll(async () => (await files()).length, { timeout: PATIENCE_MS }).toBeGreaterThan(5);
    expect((await files()).length).toBeLessThan(40);
  });

  test("the installed server speaks MCP", async () => {
    const url = await serve();
    const response = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "sandbox_open", arguments: {} },
      }),
    });
    expect(await response.text()).toContain("sandbox_id");
  });

  test("the installed command speaks MCP over stdio", async () => {
    const url = await serve();
    const client = { name: "test", version: "1" };
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: client };
    const hello = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const pipe = ["sh", "-c", 'printf "%s\\n" "$1" | "$0" mcp --url "$2"', sandboxer, hello, url];
    expect(await outside.run(folder, pipe)).toContain('"serverInfo"');
  });

  test("the console opens, with every file that its page names", async () => {
    const url = await serve();
    const page = await (await fetch(url)).text();
    const assets = [...page.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path = ""]) => path);
    expect(assets.length).toBeGreaterThan(1);
    for (const path of assets) expect([path, (await fetch(url + path)).status]).toEqual([path, 200]);
  });

  test("profiles and the sources of the agent are included", async () => {
    const profiles = await outside.run(folder, [sandboxer, "profiles", "list"]);
    expect(profiles).toContain("gvisor-default");
    const agent = join(folder, "node_modules/@sandboxer/server/agent");
    expect(await readdir(agent)).toEqual(["Makefile", "src"]);
    expect(await readdir(join(agent, "src"))).toContain("main.c");
  });

  test("the examples run", async () => {
    const url = await serve();
    expect(await outside.run(folder, ["node", "examples/try-three-ways.mjs", url])).toContain("Kept the one with 40\n");
    const local = ["node", "examples/three-servers/local.mjs", "--port", "0", "--", "--backend", "fake"];
    const [balancer = ""] = /ws:\S+/.exec(await outside.start(folder, local, /^Balancer.*\n/m)) ?? [];
    const count = ["node", "examples/three-servers/count.mjs", balancer, "3"];
    expect(await outside.run(folder, count)).toContain("every number up to 3 came once");
  });

  test.each(["hello.mjs", "try-three-ways.mjs", "three-servers/count.mjs"])(
    "%s says which Node it needs",
    async (name) => {
      // As on a Node older than 22.
      const failed = outside.run(folder, ["node", "--no-experimental-websocket", `examples/${name}`]);
      await expect(failed).rejects.toMatchObject({
        stderr: expect.stringContaining("needs Node 22 or newer; this is v"),
      });
    },
  );
});

test("installed globally, `sandboxer serve` and `sandboxer run` work, and hints name `sandboxer`", async () => {
  const folder = await outside.newFolder("global");
  const tarballs = outside.packages.map(({ tarball }) => tarball);
  await outside.run(folder, ["npm", "install", "--global", "--prefix", folder, ...tarballs]);
  const sandboxer = join(folder, "bin/sandboxer");
  const { url, banner } = await outside.serve(folder, [sandboxer], ["--backend", "fake"]);
  expect(banner).toMatch(/^Try +SANDBOXER_URL=\S+ sandboxer run -- echo hello$/m);
  expect(await outside.run(folder, [sandboxer, "run", "--", "echo", "hello"], { SANDBOXER_URL: url })).toBe("hello\n");
  const failed = outside.run(folder, [sandboxer, "get", "missing"], { SANDBOXER_URL: "http://127.0.0.1:1" });
  await expect(failed).rejects.toMatchObject({ stderr: expect.stringContaining("`sandboxer serve`") });
});

test("`npx @sandboxer/cli` runs it without installing it, and the banner names that command", async () => {
  const folder = await outside.newFolder("npx");
  const { banner } = await outside.serve(folder, ["npx", "--yes", "@sandboxer/cli"], ["--backend", "fake"]);
  expect(banner).toMatch(/^Try +SANDBOXER_URL=\S+ npx @sandboxer\/cli run -- echo hello$/m);
});
