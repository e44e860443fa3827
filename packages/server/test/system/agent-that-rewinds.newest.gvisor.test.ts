import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../../test/kit/server/server-process.ts";
import { pythonEnvironment, whyNoPython } from "../../../../test/kit/services/python-environment.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

const missing = whyNoEngine() ?? whyNoPython();
if (missing !== undefined) console.warn(`The example of an agent that rewinds is skipped: ${missing}`);

const ROOT = new URL("../../../../", import.meta.url);
const path = (name: string): string => fileURLToPath(new URL(name, ROOT));
const AGENTS = {
  TypeScript: [process.execPath, path("examples/agent-that-rewinds/agent.ts")],
  Python: [pythonEnvironment.python, path("examples/agent-that-rewinds/agent.py")],
} as const;
/** The output of the agent when it starts to work with its forks, and when it promotes one of them. */
const KILLED_AT = [/^forked/, /^promoting/];

describe.skipIf(missing !== undefined)("examples/agent-that-rewinds, on gVisor", () => {
  test.each(Object.entries(AGENTS))(
    "%s: promotes the fix that passes, though its server is killed with -9 twice",
    async (_, [program, file]) => {
      const place = { store: await temporaryFolder(), dataHome: await temporaryFolder() };
      let server = await ServerProcess.start(place);
      const url = server.url.replace(/^ws/, "http");
      const flags = ["--port", new URL(url).port];
      const agent = spawn(program, [file], {
        env: {
          ...process.env,
          SANDBOXER_URL: url,
          PYTHONPATH: path("clients/python/src"),
          PYTHONDONTWRITEBYTECODE: "1",
        },
        stdio: ["ignore", "pipe", "inherit"],
      });
      onTestFinished(() => void agent.kill("SIGKILL"));
      const ended = once(agent, "close");
      const said: string[] = [];
      const moments = [...KILLED_AT];
      for await (const line of createInterface(agent.stdout)) {
        said.push(line);
        if (moments[0]?.test(line) !== true) continue;
        moments.shift();
        await server.killHard();
        server = await ServerProcess.start({ ...place, flags });
      }
      expect(await ended).toEqual([0, null]);
      expect(moments).toEqual([]);
      const id = /^prepared {2}(\S+):/.exec(said[0] ?? "")?.[1];
      expect(said).toContain("fix-2     exit 0: 3 tests passed");
      expect(said.at(-2)).toBe(`kept      work, ${id}: 3 tests passed`);
      expect(said.at(-1)).toMatch(/^alive .* to \d+$/);
      const { items } = (await (await fetch(`${url}/v1/sandboxes`)).json()) as { items: unknown[] };
      expect(items).toEqual([]);
    },
  );
});
