import { describe, expect, test } from "vitest";
import { startProxy } from "../support/proxy.ts";
import { hasPython, inTerminal, nodeInTerminal, type RealTerminal } from "../support/real-terminal.ts";
import { startCli, type Cli } from "../support/run-cli.ts";

/** A small shell: answers lines, prints its size, exits with a code. */
const PROGRAM = `echo ready; while read line; do
  if [ "$line" = quit ]; then exit 5; fi
  if [ "$line" = size ]; then stty size; else echo "got $line"; fi; done`;

const LEAVE = "\u0010\u0011";
const CTRL_C = "\u0003";

async function started(options: readonly string[] = []): Promise<{ cli: Cli; terminal: RealTerminal }> {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const terminal = inTerminal(["shell", ...options, "web", "--", "bash", "-c", PROGRAM], {
    SANDBOXER_URL: cli.server.url,
  });
  await terminal.shows("ready");
  return { cli, terminal };
}

describe.skipIf(!hasPython)("in a real terminal (skipped without python3)", () => {
  test("keys and output pass through, the exit code is passed on, and the terminal is restored", async () => {
    const { terminal } = await started();
    terminal.send("hello\r");
    await terminal.shows("got hello\r\n");
    terminal.send("quit\r");
    expect(await terminal.ended).toEqual({ code: 5, modes_restored: true });
  });

  test("the program has the size of the terminal, and is informed of changes", async () => {
    const { terminal } = await started();
    terminal.send("size\r");
    await terminal.shows("30 100");
    terminal.resize(41, 77);
    await expect
      .poll(
        () => {
          terminal.send("size\r");
          return terminal.screen();
        },
        { timeout: 10_000, interval: 200 },
      )
      .toContain("41 77");
    terminal.send("quit\r");
    await terminal.ended;
  });

  test("Ctrl-C reaches the program, not the CLI", async () => {
    const { terminal } = await started();
    terminal.send(CTRL_C);
    expect(await terminal.ended).toEqual({ code: 130, modes_restored: true });
  });

  test("the detach keys leave it running; attach shows it again and follows it", async () => {
    const { cli, terminal } = await started();
    terminal.send("one\r");
    await terminal.shows("got one");
    terminal.send(LEAVE);
    expect(await terminal.ended).toEqual({ code: 0, modes_restored: true });
    const [, process = ""] = /sandboxer attach web ([0-9a-f-]+)/.exec(terminal.screen()) ?? [];
    const again = inTerminal(["attach", "web", process], { SANDBOXER_URL: cli.server.url });
    await again.shows(/ready[\s\S]*got one/);
    again.send("two\r");
    await again.shows("got two");
    again.send("quit\r");
    expect((await again.ended).code).toBe(5);
  });

  test("other detach keys can be chosen; the default ones then reach the program", async () => {
    const { terminal } = await started(["--detach-keys", "ctrl-a,d"]);
    terminal.send(`${LEAVE}\r`);
    await terminal.shows("got ");
    terminal.send("\u0001d");
    expect((await terminal.ended).code).toBe(0);
  });

  test.each([
    ["SIGTERM", 15],
    ["SIGHUP", 1],
  ])("%s restores the terminal, and the program keeps running", async (_name, number) => {
    const { cli, terminal } = await started();
    terminal.kill(number);
    expect(await terminal.ended).toEqual({ code: 128 + number, modes_restored: true });
    expect((await cli(["ps", "web"])).out).toContain("running");
  });

  test("run deletes its sandbox even if the terminal is closed", async () => {
    const cli = await startCli();
    const argv = ["run", "-it", "--", "bash", "-c", PROGRAM];
    const terminal = inTerminal(argv, { SANDBOXER_URL: cli.server.url });
    await terminal.shows("ready");
    terminal.kill(1);
    expect(await terminal.ended).toEqual({ code: 129, modes_restored: true });
    expect((await cli(["ls", "-q"])).out).toBe("");
  });

  test("a handoff in the middle goes unnoticed", async () => {
    const { cli, terminal } = await started();
    const two = await startCli({ store: cli.server.store });
    terminal.send("before\r");
    await terminal.shows("got before");
    await cli.id(["handoff", "web", "--to", two.server.url]);
    await expect
      .poll(
        () => {
          terminal.send("after\r");
          return terminal.screen();
        },
        { timeout: 15_000, interval: 300 },
      )
      .toContain("got after");
    terminal.send("quit\r");
    expect(await terminal.ended).toEqual({ code: 5, modes_restored: true });
    expect(terminal.screen().split("got before")).toHaveLength(2);
  });

  test("broken connections and a replaced server go unnoticed", async () => {
    const cli = await startCli();
    await cli.id(["create", "--name", "web"]);
    const proxy = await startProxy(cli.server.url);
    const terminal = inTerminal(["shell", "web", "--", "bash", "-c", PROGRAM], { SANDBOXER_URL: proxy.url });
    await terminal.shows("ready");
    const answers = async (word: string): Promise<void> => {
      await expect
        .poll(
          () => {
            terminal.send(`${word}\r`);
            return terminal.screen();
          },
          { timeout: 15_000, interval: 300 },
        )
        .toContain(`got ${word}`);
    };
    await answers("first");
    proxy.cut();
    await answers("second");
    const two = await startCli({ store: cli.server.store });
    await cli.server.drain();
    proxy.turnTo(two.server.url);
    await answers("third");
    terminal.send("quit\r");
    expect(await terminal.ended).toEqual({ code: 5, modes_restored: true });
    expect(terminal.screen().split("ready")).toHaveLength(2);
  });

  test("an uncaught error leaves the terminal restored", async () => {
    const module = new URL("../../src/terminal/process-terminal.ts", import.meta.url).href;
    const code = `const { processTerminal } = await import(${JSON.stringify(module)});
      processTerminal().enterRawMode(() => {}); process.stdout.write("raw");
      setTimeout(() => { throw new Error("oops"); }, 50);`;
    const terminal = nodeInTerminal(["--input-type=module", "-e", code]);
    expect(await terminal.ended).toEqual({ code: 1, modes_restored: true });
    expect(terminal.screen()).toContain("raw");
  });

  test("exec -it behaves the same, and an earlier failure does not touch the terminal", async () => {
    const cli = await startCli();
    await cli.id(["create", "--name", "web"]);
    const env = { SANDBOXER_URL: cli.server.url };
    const terminal = inTerminal(["exec", "-it", "web", "stty", "size"], env);
    expect((await terminal.ended).code).toBe(0);
    expect(terminal.screen()).toContain("30 100");
    const failed = inTerminal(["exec", "-it", "nosuch", "bash"], env);
    expect(await failed.ended).toEqual({ code: 4, modes_restored: true });
  });

  test("tables have colours, and progress is not part of the data", async () => {
    const cli = await startCli();
    await cli.id(["create", "--name", "web"]);
    const env = { SANDBOXER_URL: cli.server.url };
    const coloured = inTerminal(["ls"], env);
    await coloured.ended;
    expect(coloured.screen()).toContain("\u001B[32mrunning\u001B[0m");
    const plain = inTerminal(["ls"], { ...env, NO_COLOR: "1" });
    await plain.ended;
    expect(plain.screen()).not.toContain("\u001B[");
  });
});
