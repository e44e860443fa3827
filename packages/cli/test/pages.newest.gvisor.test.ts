import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const ROOT = join(import.meta.dirname, "../../..");

/** Commands that cannot run here, and why. Whoever writes another command either sees it run, or says so here. */
const NOT_HERE: readonly (readonly [RegExp, string])[] = [
  [/^git clone/, "there is no address to clone from"],
  [/^npm (test|run )/, "they run the tests and the benchmarks"],
  [/^npx @sandboxer\/cli setup --newest/, "it builds an engine for minutes; the set-up of the tests does it"],
  [/docker compose|SANDBOXER_API_KEYS/, "it needs images from a registry"],
  [/gcloud|gs:\/\/\$BUCKET|^docker build|^(PROJECT|SERVICE_ACCOUNT|IMAGE)=/, "it needs a project at Google"],
];

/** Commands that go on until they are stopped, by what they say when they are ready. */
const GO_ON: readonly (readonly [RegExp, RegExp])[] = [
  [/^npm start/, /^Try /m],
  [/^npx @sandboxer\/cli serve/, /http:\/\/127\.0\.0\.1:\d+/],
  [/^node .*local\.mjs/, /^Balancer/m],
  [/^node .*count\.mjs/, /^2$/m],
];

/** Commands that need a terminal. They get one, with a user who types a line and leaves. */
const IN_A_TERMINAL = /^npx @sandboxer\/cli shell/;

interface Command {
  readonly line: string;
  /** The output that the page shows below the command. */
  readonly shown: readonly string[];
}

function commandsOf(page: string): readonly Command[] {
  const commands: { line: string; shown: string[] }[] = [];
  for (const [, language = "", block = ""] of page.matchAll(/^```(console|sh|)\n([\s\S]*?)^```$/gm)) {
    const lines = block.replaceAll("\\\n", " ").split("\n").filter(Boolean);
    // A block without a prompt shows what was printed, or a picture.
    if (language !== "sh" && !/^[$#] /.test(lines[0] ?? "")) continue;
    for (const line of lines) {
      const [, typed] = (language === "sh" ? /^(.*)$/ : /^[$#] (.*?)(?: {2,}\(.*\))?$/).exec(line) ?? [];
      if (typed !== undefined) commands.push({ line: typed, shown: [] });
      else commands.at(-1)?.shown.push(line);
    }
  }
  for (const [, line = ""] of page.matchAll(/^\| `((?:npm|npx|node) [^`]+)` \|/gm)) {
    // A table may repeat what was typed above it.
    if (!commands.some((command) => command.line === line)) commands.push({ line, shown: [] });
  }
  return commands;
}

/** A machine of its own as far as names and ports go: another home, and a network where nothing else listens. */
class Machine {
  readonly #home: string;
  readonly #holder: ChildProcess;
  readonly #running: { readonly child: ChildProcess; readonly ended: Promise<unknown> }[] = [];

  private constructor(home: string, holder: ChildProcess) {
    this.#home = home;
    this.#holder = holder;
  }

  static async start(): Promise<Machine> {
    const home = await mkdtemp(join(tmpdir(), "sandboxer-pages-"));
    await mkdir(join(home, "store"));
    const holder = spawn("unshare", ["--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"]);
    await once(holder.stdout, "data");
    const machine = new Machine(home, holder);
    onTestFinished(async () => await machine.#end());
    return machine;
  }

  /** Runs a command and returns its output: all of it, or up to the line that says that it is ready. */
  async run({ line }: Command): Promise<string> {
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
    return said;
  }

  #environment(): NodeJS.ProcessEnv {
    const { PATH, XDG_CACHE_HOME = join(homedir(), ".cache") } = process.env;
    // Engines and agents come from where the set-up of the tests has put them.
    return { PATH, HOME: this.#home, XDG_CACHE_HOME, TERM: "xterm" };
  }

  async #end(): Promise<void> {
    for (const { child } of this.#running.toReversed()) {
      // With all that it started: npm does not pass everything on.
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), "SIGTERM");
    }
    await Promise.all(this.#running.map(({ ended }) => ended));
    this.#holder.kill();
    await rm(this.#home, { recursive: true, force: true });
  }
}

/** Numbers differ from run to run, and so do what comes behind a name, and what a page leaves out. */
function fits(shown: string): RegExp {
  const [start = ""] = shown.split(/ {2,}(?=\S)/).filter(Boolean);
  return new RegExp(
    start
      .split(/\d+|…/)
      .map((part) => RegExp.escape(part))
      .join("\\S*"),
  );
}

const pages = [
  "README.md",
  ...(await readdir(join(ROOT, "examples"), { recursive: true }))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `examples/${name}`),
];

test.each(pages)("the commands of %s do what it says", async (name) => {
  const commands = commandsOf(await readFile(join(ROOT, name), "utf8"));
  expect(commands).not.toEqual([]);
  const here = commands.filter(({ line }) => !NOT_HERE.some(([pattern]) => pattern.test(line)));
  const machine = await Machine.start();
  for (const command of here) {
    const said = await machine.run(command);
    for (const shown of command.shown) expect(`${command.line}\n${said}`).toMatch(fits(shown));
  }
});
