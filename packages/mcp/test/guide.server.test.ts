import { readFile } from "node:fs/promises";
import { startTestServer, type TestServer } from "@sandboxer/client/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, type McpClient } from "./support/clients.ts";

const KEY = "a-key-for-tests";
const guide = await readFile(new URL("../../../docs/guides/mcp.md", import.meta.url), "utf8");

/** A server in the configuration of an agent: a program, or an address with a key in a variable. */
type Configured = { readonly argv: readonly string[] } | { readonly url: string; readonly key: string };

/** The configurations in a section of the guide. */
function configurationsOf(title: string): Configured[] {
  const [, section = ""] = new RegExp(`^## ${title}\n([\\s\\S]*?)(?=^## )`, "m").exec(guide) ?? [];
  const commands = [...section.matchAll(/^claude mcp add sandboxer -- (.*)$/gm)].map(([, line = ""]) =>
    line.split(" "),
  );
  const json = [...section.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => JSON.parse(text) as Config);
  const inline = [...section.matchAll(/`("sandboxer": \{.*\})`/g)].map(([, text]) => JSON.parse(`{${text}}`) as Config);
  const toml = [...section.matchAll(/^```toml\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => tableOf(text));
  return [...commands.map((argv) => ({ argv })), ...[...json, ...inline, ...toml].map(serverOf)];
}

/** Every value of these tables is JSON too. */
function tableOf(text: string): Config {
  const [head, ...lines] = text.trim().split("\n");
  expect(head).toBe("[mcp_servers.sandboxer]");
  return Object.fromEntries(
    lines.map((line) => line.split(" = ", 2)).map(([name, value = ""]) => [name, JSON.parse(value) as never]),
  );
}

interface Entry {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly url?: string;
  readonly headers?: { readonly Authorization?: string };
  readonly bearer_token_env_var?: string;
}

/** One server, or several by name. */
interface Config extends Entry {
  readonly mcpServers?: { readonly sandboxer?: Entry };
  readonly servers?: { readonly sandboxer?: Entry };
  readonly sandboxer?: Entry;
}

function serverOf(config: Config): Configured {
  const entry = config.mcpServers?.sandboxer ?? config.servers?.sandboxer ?? config.sandboxer ?? config;
  const { command, args = [], url, headers, bearer_token_env_var: variable } = entry;
  if (url === undefined) return { argv: [command ?? "", ...args] };
  return { url, key: headers?.Authorization?.replace(/^Bearer \$\{(.*)\}$/, "$1") ?? variable ?? "" };
}

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: [KEY] });
});
afterAll(() => server.close());

async function open(configured: Configured): Promise<McpClient> {
  if ("argv" in configured) {
    expect(configured.argv.slice(0, 3)).toEqual(["npx", "@sandboxer/cli", "mcp"]);
    return connect("2025-11-25", { argv: [...configured.argv.slice(3), "--url", server.url], key: KEY });
  }
  expect(["SANDBOXER_API_KEY", "input:sandboxer-key"]).toContain(configured.key);
  expect(configured.url).toBe("http://127.0.0.1:8080/mcp");
  return connect("2025-11-25", { url: server.url, key: KEY });
}

describe.each(["Claude Code", "Codex CLI", "VS Code"])("the guide's configurations of %s", (title) => {
  test("connect as a program and over HTTP, with all tools", async () => {
    const configurations = configurationsOf(title);
    expect(configurations.map((each) => ("argv" in each ? "program" : "HTTP")).toSorted()).toEqual(["HTTP", "program"]);
    for (const configured of configurations) {
      const client = await open(configured);
      expect((await client.tools()).length).toBeGreaterThan(15);
      const { sandbox_id } = await client.done<{ sandbox_id: string }>("sandbox_open", {
        key: title.replace(" ", "-"),
      });
      expect(await client.done("run", { sandbox_id, command: "echo works" })).toMatchObject({ output: "works\n" });
    }
  });
});
