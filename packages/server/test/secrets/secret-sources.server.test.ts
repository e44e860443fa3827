import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SecretDefinition } from "../../src/secrets/secret-definition.ts";
import { SecretSources, type SecretSourcesOptions } from "../../src/secrets/secret-sources.ts";

let folder: string;
let warnings: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "secrets-"));
  warnings = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

function sources(definition: SecretDefinition, options: Partial<SecretSourcesOptions> = {}): SecretSources {
  return new SecretSources({
    definitions: { github: definition },
    environment: { PATH: process.env["PATH"] },
    warn: (message) => warnings.push(message),
    ...options,
  });
}

const shell = (script: string): SecretDefinition => ({ command: ["sh", "-c", script] });
const failing = (message: RegExp) =>
  expect.objectContaining({ code: "secret_unavailable", message: expect.stringMatching(message) });

function file(content: string | Uint8Array, mode = 0o600): SecretDefinition {
  const path = join(folder, "token");
  writeFileSync(path, content, { mode });
  return { file: path };
}

describe("a file", () => {
  test.each([
    ["value\n", "value"],
    ["value\r\n", "value"],
    ["value\n\n", "value\n"],
    [" va lue ", " va lue "],
    ["first\nsecond", "first\nsecond"],
  ])("%j is %j", async (content, value) => {
    const secret = await sources(file(content)).resolve("github");
    expect(secret.reveal()).toBe(value);
    expect(secret.name).toBe("github");
    expect(warnings).toEqual([]);
  });

  test("is read each time", async () => {
    const secrets = sources(file("old"));
    await secrets.resolve("github");
    file("new");
    expect((await secrets.resolve("github")).reveal()).toBe("new");
  });

  test("that others may read causes one warning, without the value", async () => {
    const secrets = sources(file("hunter2", 0o644));
    await secrets.resolve("github");
    await secrets.resolve("github");
    expect(warnings).toEqual([
      `The secret github: other users can read ${folder}/token (mode 0644). Run chmod 600 on it.`,
    ]);
  });

  test("may be a link to one, as in Kubernetes", async () => {
    const { file: target = "" } = file("linked");
    symlinkSync(target, join(folder, "link"));
    expect((await sources({ file: join(folder, "link") }).resolve("github")).reveal()).toBe("linked");
  });

  test.each<[string, () => SecretDefinition, RegExp]>([
    ["not there", () => ({ file: join(folder, "none") }), /secret github \(file .*none\) does not exist/],
    ["a folder", () => ({ file: folder }), /is not a file/],
    ["empty", () => file("\n"), /is empty/],
    ["not UTF-8", () => file(new Uint8Array([0xff, 0xfe])), /is not UTF-8/],
    ["with NUL", () => file("a\0b"), /contains NUL/],
    ["too large", () => file("x".repeat(70_000)), /larger than 65536 bytes/],
  ])("%s is refused", async (_, definition, message) => {
    await expect(sources(definition()).resolve("github")).rejects.toThrow(failing(message));
  });

  test("a pipe without a writer does not block", async () => {
    const pipe = join(folder, "pipe");
    expect(spawnSync("mkfifo", [pipe]).status).toBe(0);
    await expect(sources({ file: pipe }).resolve("github")).rejects.toThrow(failing(/is not a file/));
  });
});

describe("a variable", () => {
  test("is read when it is requested", async () => {
    const environment: Record<string, string> = {};
    const secrets = sources({ environment: "TOKEN" }, { environment });
    await expect(secrets.resolve("github")).rejects.toThrow(failing(/github \(environment TOKEN\) is not set/));
    environment["TOKEN"] = "late";
    expect((await secrets.resolve("github")).reveal()).toBe("late");
  });

  test("that is empty is refused", async () => {
    const secrets = sources({ environment: "TOKEN" }, { environment: { TOKEN: "" } });
    await expect(secrets.resolve("github")).rejects.toThrow(failing(/is empty/));
  });
});

describe("a command", () => {
  test("returns its output; its arguments are not parsed by a shell", async () => {
    const secrets = sources({ command: ["printf", "%s\n", "$HOME; `id`"] });
    expect((await secrets.resolve("github")).reveal()).toBe("$HOME; `id`");
  });

  test("has the given environment, and an empty stdin", async () => {
    const secrets = sources(shell('cat; printf "%s" "$WHO"'), {
      environment: { PATH: process.env["PATH"], WHO: "ada" },
    });
    expect((await secrets.resolve("github")).reveal()).toBe("ada");
  });

  test("that fails is named with its exit code, and without its output", async () => {
    const secrets = sources(shell("echo hunter2; echo hunter2 >&2; exit 3"));
    const error = await secrets.resolve("github").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "secret_unavailable",
      message: "The secret github (command sh) failed: exit code 3.",
    });
    expect(inspect(error, { showHidden: true })).not.toContain("hunter2");
  });

  test.each<[string, SecretDefinition, RegExp]>([
    ["does not exist", { command: ["no-such-program-here"] }, /program does not exist/],
    ["may not be run", { command: ["/"] }, /cannot be run \(EACCES\)/],
    ["is killed", shell("kill -9 $$"), /ended by SIGKILL/],
    ["prints nothing", shell(":"), /is empty/],
    ["prints without end", shell("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"), /more than 65536 bytes/],
  ])("that %s is refused", async (_, definition, message) => {
    await expect(sources(definition).resolve("github")).rejects.toThrow(failing(message));
  });

  test("that hangs is killed with its children", async () => {
    const pids = join(folder, "pids");
    const secrets = sources(shell(`sleep 600 & echo $! $$ > ${pids}; wait`), { commandTimeoutMs: 1500 });
    await expect(secrets.resolve("github")).rejects.toThrow(failing(/did not answer in 1\.5 s/));
    const started = readFileSync(pids, "utf8").trim().split(" ");
    expect(started).toHaveLength(2);
    await expect.poll(() => started.filter((pid) => isRunning(pid))).toEqual([]);
  });

  test("is killed when its caller aborts", async () => {
    const controller = new AbortController();
    const started = join(folder, "started");
    const resolving = sources(shell(`echo $$ > ${started}.part; mv ${started}.part ${started}; sleep 600`)).resolve(
      "github",
      {
        signal: controller.signal,
      },
    );
    resolving.catch(() => {});
    await expect.poll(() => existsSync(started)).toBe(true);
    controller.abort(new Error("called off"));
    await expect(resolving).rejects.toThrow("called off");
    await expect.poll(() => isRunning(readFileSync(started, "utf8").trim())).toBe(false);
  });
});

test.each(["gihub", "__proto__", "constructor"])("a secret %s that is not defined is named", async (name) => {
  await expect(sources({ environment: "X" }).resolve(name)).rejects.toThrow(failing(new RegExp(`no secret "${name}"`)));
  await expect(sources({ environment: "X" }).resolve("gihub")).rejects.toThrow(/Did you mean github\?/);
});

/** A process that was killed and that nobody has waited for is not running. */
function isRunning(pid: string): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
