import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COMMAND } from "../../../test/kit/server/command.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** Commands of README.md and the examples that cannot run here, and why. The pages of docs say it above the block. */
const NOT_HERE: readonly (readonly [RegExp, string])[] = [
  [/^git clone/, "there is no address to clone from"],
  [/^npm (test|run )/, "they run the tests and the benchmarks"],
  [/^npx @sandboxer\/cli setup --newest/, "it builds an engine for minutes; the set-up of the tests does it"],
  [/docker compose|SANDBOXER_API_KEYS/, "it needs images from a registry"],
  [/gcloud|gs:\/\/\$BUCKET|^docker build|^(PROJECT|SERVICE_ACCOUNT|IMAGE)=/, "it needs a project at Google"],
];

/** Commands that run until they are stopped, with the output that shows that they are ready. */
const GO_ON: readonly (readonly [RegExp, RegExp])[] = [
  [/^npm start/, /^Try /m],
  [/^(npx @sandboxer\/cli|sandboxer) serve\b/, /http:\/\/127\.0\.0\.1:\d+/],
  [/^node .*local\.mjs/, /^Balancer/m],
  [/^node .*(count|calls)\.mjs/, /^2$/m],
];
const STARTS_A_SERVER = /^(npm start|(npx @sandboxer\/cli|sandboxer) serve\b)/;

/** Commands that need a terminal. They get one, with a user who types a line and leaves. */
const IN_A_TERMINAL = /^(npx @sandboxer\/cli|sandboxer) shell/;

interface Command {
  /** The number of the block on the page. */
  readonly block: number;
  readonly line: string;
  /** The output that the page shows below the command, or below its block. */
  readonly shown: readonly string[];
}

/** A code block with its indentation, and the line above it that says why the tests do not run it, if there is one. */
const BLOCK = /^( *)(?:(\*Not run by our tests.*\*)\n\n\1)?```([a-z]*)\n([\s\S]*?)^\1```$/gm;

function commandsOf(page: string): readonly Command[] {
  const commands: { block: number; line: string; shown: string[] }[] = [];
  for (const { index: at, 1: indentation = "", 2: reason, 3: language = "", 4: block = "" } of page.matchAll(BLOCK)) {
    if (reason !== undefined) continue;
    const lines = block
      .replaceAll(new RegExp(`^${indentation}`, "gm"), "")
      .replaceAll("\\\n", " ")
      .replaceAll(/<<'END'\n[\s\S]*?^END$/gm, (document) => document.replaceAll("\n", "\0"))
      .split("\n")
      .filter(Boolean);
    if (language === "text") commands.at(-1)?.shown.push(...lines);
    // A block without a prompt shows output, or a picture.
    if (language !== "sh" && !(/^(console)?$/.test(language) && /^[$#] /.test(lines[0] ?? ""))) continue;
    for (const line of lines) {
      const [, typed] = (language === "sh" ? /^([^]*)$/ : /^[$#] (.*?)(?: {2,}\(.*\))?$/).exec(line) ?? [];
      if (typed !== undefined) commands.push({ block: at, line: typed.replaceAll("\0", "\n"), shown: [] });
      else commands.at(-1)?.shown.push(line);
    }
  }
  for (const [, line = ""] of page.matchAll(/^\| `((?:npm|npx|node) [^`]+)` \|/gm)) {
    // A table may repeat a command from above it.
    if (!commands.some((command) => command.line === line)) commands.push({ block: -1, line, shown: [] });
  }
  return commands;
}

/** A machine of its own for names and ports: another home, and a network where nothing else listens. */
class Machine {
  readonly #home: string;
  readonly #holder: ChildProcess;
  readonly #asByDefault: boolean;
  /** npx takes a second, so only one page uses it, and once; then the command that npx runs. */
  #npxWorks: boolean;
  readonly #running: { readonly child: ChildProcess; readonly ended: Promise<unknown> }[] = [];

  private constructor(home: string, holder: ChildProcess, asByDefault: boolean) {
    this.#home = home;
    this.#holder = holder;
    this.#asByDefault = asByDefault;
    this.#npxWorks = !asByDefault;
  }

  /**
   * By default the command comes from npx and the clone, and servers have a warm pool. Other machines have the command
   * that `npm test` has built: each command would load the clone's sources.
   */
  static async start(onEnd: (end: () => Promise<void>) => void, { asByDefault = false } = {}): Promise<Machine> {
    const home = await mkdtemp(join(tmpdir(), "sandboxer-pages-"));
    await mkdir(join(home, "store"));
    await mkdir(join(home, "bin"));
    if (!asByDefault) await symlink(COMMAND, join(home, "bin/sandboxer"));
    const holder = spawn("unshare", ["--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"]);
    await once(holder.stdout, "data");
    const machine = new Machine(home, holder, asByDefault);
    onEnd(async () => await machine.#end());
    return machine;
  }

  /** Runs a command and returns its output: all of it, or up to the line that shows that it is ready. */
  async run(written: string): Promise<string> {
    const line = this.#npxWorks ? written.replace(/^npx @sandboxer\/cli/, "sandboxer") : written;
    const typed = IN_A_TERMINAL.test(line)
      ? `printf 'echo in the shell\\nexit\\n' | script -qec '${line}' /dev/null`
      : line;
    const [, ready] = GO_ON.find(([pattern]) => pattern.test(line)) ?? [];
    const child = spawn(
      "nsenter",
      [
        "--net",
        "--target",
        String(this.#holder.pid),
        "bash",
        "-c",
        typed.replaceAll("/path", join(this.#home, "store")),
      ],
      { cwd: ROOT, env: this.#environment(), stdio: ["ignore", "pipe", "pipe"], detached: true },
    );
    const ended = once(child, "close") as Promise<[number | null]>;
    this.#running.push({ child, ended });
    let said = "";
    const isReady = new Promise<void>((resolve) => {
      const hear = (chunk: Buffer): void => {
        said += chunk.toString();
        if (ready?.test(said) === true) resolve();
      };
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
    });
    const code = await Promise.race([ended.then(([exit]) => exit), isReady]);
    if (code !== (ready === undefined ? 0 : undefined))
      throw new Error(`${line}\nended with ${String(code)}:\n${said}`);
    this.#npxWorks ||= line.startsWith("npx @sandboxer/cli");
    return said;
  }

  #environment(): NodeJS.ProcessEnv {
    const { PATH, XDG_CACHE_HOME = join(homedir(), ".cache") } = process.env;
    // Engines and agents come from the set-up of the tests.
    const path = [join(this.#home, "bin"), join(ROOT, "node_modules/.bin"), PATH ?? ""].join(":");
    // Each pooled sandbox costs as much as a used one.
    const pool = this.#asByDefault ? {} : { SANDBOXER_WARM_POOL_MAX: "0" };
    return { PATH: path, HOME: this.#home, XDG_CACHE_HOME, TERM: "xterm", ...pool };
  }

  async #end(): Promise<void> {
    for (const { child } of this.#running.toReversed()) {
      // With all its children: npm does not pass every signal on.
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), "SIGTERM");
    }
    await Promise.all(this.#running.map(({ ended }) => ended));
    this.#holder.kill();
    await rm(this.#home, { recursive: true, force: true });
  }
}

/** Numbers and ids differ between runs, and so do columns after a name, and parts that a page leaves out. */
function fits(shown: string): RegExp {
  const [start = ""] = shown
    .trim()
    .split(/ {2,}(?=\S)/)
    .filter(Boolean);
  return new RegExp(
    start
      .replaceAll(/\b[0-9a-f]{8}\b(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12})?/g, "…")
      .split(/\d+|…/)
      .map((part) => RegExp.escape(part))
      .join("\\S*"),
  );
}

async function pagesIn(folder: string): Promise<string[]> {
  const names = await readdir(join(ROOT, folder), { recursive: true });
  return names.filter((name) => name.endsWith(".md")).map((name) => `${folder}/${name}`);
}

/** Other tests run these, with a registry, a package index or a framework: they say so above their blocks. */
const ELSEWHERE = ["code-interpreter", "deep-agents", "openai-agents"].map((name) => `examples/${name}/README.md`);
const pages = ["README.md", ...(await pagesIn("examples")), ...(await pagesIn("docs/start"))].filter(
  (name) => !ELSEWHERE.includes(name),
);
const guides = await Promise.all(
  (await pagesIn("docs/guides")).map(async (name) => ({
    name,
    commands: commandsOf(await readFile(join(ROOT, name), "utf8")),
  })),
);

test.concurrent.for(pages)("the commands of %s print the shown output", async (name, { onTestFinished }) => {
  const commands = commandsOf(await readFile(join(ROOT, name), "utf8"));
  expect(commands).not.toEqual([]);
  const here = commands.filter(({ line }) => !NOT_HERE.some(([pattern]) => pattern.test(line)));
  await expectOutput(await Machine.start(onTestFinished, { asByDefault: name === "README.md" }), here);
});

test.concurrent.for(guides.filter(({ commands }) => commands.length > 0))(
  "the commands of $name print the shown output",
  async ({ commands }, { onTestFinished }) => {
    const machine = await Machine.start(onTestFinished);
    if (!commands.some(({ line }) => STARTS_A_SERVER.test(line))) await machine.run("sandboxer serve --store /path");
    await expectOutput(machine, commands);
  },
);

async function expectOutput(machine: Machine, commands: readonly Command[]): Promise<void> {
  let printed = { block: -1, text: "" };
  for (const { block, line, shown } of commands) {
    const text = `${line}\n${await machine.run(line)}`;
    printed = { block, text: block === printed.block ? printed.text + text : text };
    for (const one of shown) expect(printed.text).toMatch(fits(one));
  }
}
