import { execFileSync } from "node:child_process";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { HOSTILE } from "../support/hostile.ts";

// No reset of the modules: the files of this suite share a worker, and OpenAPI documents need one copy of each schema.
async function at(url: string, hasKey: boolean): Promise<typeof import("../../src/actions/spellings.ts")> {
  vi.stubGlobal("location", new URL(url));
  const { session } = await import("../../src/session.ts");
  session.value = { state: "ready", server: { hasKey } as never };
  return import("../../src/actions/spellings.ts");
}

beforeEach(() => () => vi.unstubAllGlobals());

describe("commands that are copied from the console", () => {
  test("name this server, and the key if one is needed", async () => {
    const usual = await at("http://127.0.0.1:8080/instances", false);
    expect(usual.commandLine("rm", "a")).toBe("sandboxer rm a");
    expect(usual.sdkOnSandbox("a")).toContain('Sandbox.attach("a", { url: "http://127.0.0.1:8080" })');
    const other = await at("https://sandboxes.example/lineage", true);
    expect(other.commandLine("rm", "a")).toBe("SANDBOXER_URL=https://sandboxes.example sandboxer rm a");
    expect(other.sdkOnSandbox("a")).toContain("apiKey: process.env.SANDBOXER_API_KEY");
  });

  test("quote each word for a shell, without characters that a terminal acts upon when pasted", async () => {
    const { shellWord } = await at("http://127.0.0.1:8080/", false);
    const names = [...HOSTILE, "a'\u0003\ntouch pwned\n", String.raw`\n $'x' \'`, "\ttab", "it's", "-rf", "~", "*"];
    for (const name of names.map((text) => text.toWellFormed().replaceAll("\0", ""))) {
      const word = shellWord(name);
      // oxlint-disable-next-line no-control-regex
      expect(word).not.toMatch(/[\u0001-\u0009\u000B-\u001F\u007F-\u009F\u202A-\u202E]/);
      const heard = execFileSync("bash", ["--norc", "-c", `printf %s ${word}`], {
        encoding: "utf8",
        env: { LC_ALL: "C" },
      });
      expect(heard).toBe(name);
    }
  });
});
