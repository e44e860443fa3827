import { describe, expect, onTestFinished, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";
import { hasPython, inTerminal } from "../support/real-terminal.ts";

const missing = hasPython ? whyNoEngine() : "there is no python3, which the tests have their terminal from";
if (missing !== undefined) console.warn(`The tests of the CLI's terminal on gVisor are skipped: ${missing}`);

/** Prints its input, and continues when it is interrupted. Its code, which the terminal shows, has neither text. */
const READER = `import sys
def read_on():
  print("rea" + "dy")
  while True: print([sys.stdin.readline().strip()])
while True:
  try: read_on()
  except KeyboardInterrupt: print("inter" + "rupted")`.replaceAll("\n", "\r");

describe.skipIf(missing !== undefined)("the CLI's terminal, on gVisor", () => {
  test("a shell has its prompt, its size, Ctrl-C and a checkpoint, and can be left and attached again", async () => {
    const server = await ServerProcess.start({ store: await temporaryFolder() });
    onTestFinished(() => void server.stop());
    const env = { SANDBOXER_URL: server.url.replace(/^ws/, "http") };
    const run = async (argv: string[]): Promise<string> => {
      const io = fakeIo(env);
      expect({ code: await runProgram(argv, io), err: io.err() }).toMatchObject({ code: 0 });
      return io.out();
    };
    await run(["create", "--name", "box"]);
    const terminal = inTerminal(["shell", "box"], env);
    await terminal.shows(/\$ $/);
    terminal.send("stty size\r");
    await terminal.shows("30 100");
    terminal.resize(41, 77);
    await expect
      .poll(() => (terminal.send("stty size\r"), terminal.screen()), { timeout: 20_000, interval: 500 })
      .toContain("41 77");
    terminal.send("echo be''gun; sleep 1000\r");
    await terminal.shows("begun");
    // Lines and ends of file that were typed ahead and not read do not delay a Ctrl-C, which discards them.
    terminal.send("\u0004echo not-$((1 + 1))-be-read\r\u0004\u0004");
    await expect
      .poll(() => (terminal.send("\u0003echo $((40 + 2))-again\r"), terminal.screen()), {
        timeout: 20_000,
        interval: 500,
      })
      .toContain("42-again");
    expect(terminal.screen()).not.toContain("not-2-be-read");
    // The same holds for a partly typed line: the next line begins without it, and without the character.
    terminal.send(`python3 -c '${READER}'\r`);
    await terminal.shows("ready");
    terminal.send("discarded\u0003");
    await terminal.shows("interrupted");
    terminal.send("kept\r");
    await terminal.shows(/\['kept'\]/);
    terminal.send("\u001c");
    await terminal.shows(/Quit[^$]*\$ $/);
    // A program that turned off line end conversion sends a bare line feed.
    terminal.send("stty -opost; printf 'one\\ntwo\\r\\n'; stty opost\r");
    await terminal.shows("one\ntwo\r\n");
    terminal.send("kept=in-memory\r");
    terminal.send("\u0010\u0011");
    expect(await terminal.ended).toEqual({ code: 0, modes_restored: true });

    await run(["checkpoint", "box"]);
    const [, process = ""] = /sandboxer attach box ([0-9a-f-]+)/.exec(terminal.screen()) ?? [];
    const again = inTerminal(["attach", "box", process], env);
    await again.shows("41 77");
    again.send("echo $kept-still; exit 9\r");
    await again.shows("in-memory-still");
    expect(await again.ended).toEqual({ code: 9, modes_restored: true });
  });
});
