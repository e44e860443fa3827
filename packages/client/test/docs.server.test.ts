import { readdir, readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { describe, expect, test, vi } from "vitest";
import * as sdk from "../src/index.ts";
import * as nodeEntry from "../src/node/index.ts";
import * as testingEntry from "../src/testing/index.ts";
import { server } from "./support/server.ts";

const DEFAULT_URL = "http://127.0.0.1:8080";
const ENTRIES: Readonly<Record<string, object>> = {
  "@sandboxer/client": sdk,
  "@sandboxer/client/node": nodeEntry,
  "@sandboxer/client/testing": testingEntry,
};

interface Block {
  readonly name: string;
  readonly code: string;
}

/** The examples of a page, except those with a line above them that says why they are not run. */
async function blocksOf(page: string): Promise<Block[]> {
  const text = await readFile(new URL(`../../../${page}`, import.meta.url), "utf8");
  return [...text.matchAll(/^(\*Not run by our tests.*\*\n\n)?```ts\n([\s\S]*?)^```$/gm)]
    .filter(([, reason]) => reason === undefined)
    .map(({ 2: code = "", index }) => ({
      name: `${page}:${text.slice(0, index).split("\n").length}`,
      code,
    }));
}

/** The output of `console.log` according to the comments after it. */
function promises(code: string): string[] {
  return [...code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, text]) => text ?? "");
}

/** Runs an example as the body of a function with the names that pages assume: a client, and a sandbox. */
async function run(code: string, scope: Readonly<Record<string, unknown>>): Promise<void> {
  const body = stripTypeScriptTypes(code).replaceAll(
    /^import \{([^}]*)\} from "([^"]+)";$/gm,
    (_, names: string, entry: string) => `const {${names}} = await load(${JSON.stringify(entry)});`,
  );
  const load = async (entry: string): Promise<object> =>
    ENTRIES[entry] ?? ((await import(/* @vite-ignore */ entry)) as object);
  const AsyncFunction = (async () => {}).constructor as new (
    ...parts: string[]
  ) => (...values: unknown[]) => Promise<void>;
  await new AsyncFunction("load", ...Object.keys(scope), `{${body}}`)(load, ...Object.values(scope));
}

const guides = (await readdir(new URL("../../../docs/guides", import.meta.url))).map((name) => `docs/guides/${name}`);
const pages = ["README.md", "docs/start/README.md", "docs/reference/sdk.md", ...guides];
const blocks = (await Promise.all(pages.map(blocksOf))).flat();

describe("every example runs, and prints the shown output", () => {
  test("there are examples", () => {
    expect(blocks.length).toBeGreaterThan(15);
  });

  test.for(blocks)("$name", async ({ code }) => {
    const { url, client } = await server();
    const [realFetch, RealWebSocket] = [fetch, WebSocket];
    const here = (address: unknown): string => String(address).replace(DEFAULT_URL, url);
    vi.stubGlobal("fetch", (address: unknown, init: RequestInit) => realFetch(here(address), init));
    vi.stubGlobal(
      "WebSocket",
      class extends RealWebSocket {
        constructor(address: string, protocols?: string | string[]) {
          super(here(address).replace(DEFAULT_URL.replace("http", "ws"), url.replace("http", "ws")), protocols);
        }
      },
    );
    const printed: string[] = [];
    const log = vi.spyOn(console, "log").mockImplementation((...values) => void printed.push(values.join(" ").trim()));
    const needsSandbox = /\bsandbox\b/.test(code) && !/\bsandbox =/.test(code);
    try {
      await run(code, needsSandbox ? { client, sandbox: await sdk.Sandbox.create({ client }) } : {});
    } finally {
      log.mockRestore();
      vi.unstubAllGlobals();
    }
    for (const promise of promises(code)) expect(printed.map((text) => text.split("\n")[0])).toContain(promise);
  });
});
