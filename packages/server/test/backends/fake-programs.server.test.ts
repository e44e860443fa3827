import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { FakeBackend } from "../../src/backends/fake/index.ts";
import { newRequest } from "./contract/context.ts";
import { bash, finish, node, python, start } from "./contract/programs.ts";

/** Each program and its stdin. Its stdout and exit code must equal those of the real one. */
const PROGRAMS: readonly [argv: readonly string[], stdin?: string][] = [
  [bash("echo a  b 'c  d' \"e $HOME_OF_NOBODY\"; echo -n x; exit 3")],
  [bash('x=5; y="v $x"; x=$((x * 2 + 1)); echo "$x $y" ${x}1; echo \'$x\' \\$x')],
  [
    bash(
      "for i in $(seq 2 4); do echo $i; done; for i in {1..2}; do echo b$i; done; for w in a 'b c'; do echo \"$w\"; done",
    ),
  ],
  [
    bash(
      "i=0; while [ $i -lt 5 ]; do i=$((i+1)); if [ $i = 2 ]; then continue; fi; if [ $i = 4 ]; then break; else echo $i; fi; done; echo $?",
    ),
  ],
  [bash("true && echo yes; false && echo no; false || echo or; false; echo $?; no-such-command 2> /dev/null; echo $?")],
  [
    bash(
      'echo one > f; echo two >> f; cat f; { echo three; echo four; } > g; cat g f; cat < f; echo "$(cat f)"; rm f g; cat f 2> /dev/null || echo gone',
    ),
  ],
  [
    bash(
      "mkdir -p d/e; cd d/e && touch z a; ls; cd ../..; ls d; rm -rf d; [ -d d ] || echo removed; [ -z '' ] && echo empty",
    ),
  ],
  [
    bash('read -r x; echo "got $x"; while read -r line; do echo "line $line"; done; echo "end $?"'),
    "first\nsecond\nthird\n",
  ],
  [bash("cat; echo; # comment\necho after"), "all\nof it"],
  [bash("printf '%s-%d%%\\n\\x41\\101\\t|' text 7; printf 'ü\\n'; echo 'ä€😀'")],
  [bash("yes hello | head -n 3; yes ab | head -c 7; head -c 3 /dev/zero")],
  [bash("sleep 0.05 & wait; echo waited; export A=b; printenv A; kill -15 $$; echo never")],
  [bash("echo to-stderr >&2; echo both 2>&1; (echo sub; echo shell); exit")],
  [bash("for")],
  [
    python(
      "import sys, time\nx = 1\nfor i in range(3):\n    x += i\n    if i == 1:\n        continue\n    print('i', i, x)\ntime.sleep(0.01)\nprint(f'{x} is {x + 1}', end='!\\n')\nsys.exit(x)",
    ),
  ],
  [
    python(
      "x = 5\nwhile True:\n  x -= 1\n  if x < 2: break\n  elif x == 3: print('three')\n  else:\n    print('other', x)\nprint(x, True, None, not x, 7 // 2, 7 % 3, 'ab' * 2, len('äb'), sep=',')",
    ),
  ],
  [python("name = input('? ')\nprint('hi', name)\nprint(input(), end='')"), "bob\nrest\n"],
  [python("for x in range(2, 8, 3):\n\n  # comment\n  print(x)")],
  [python("print('before')\nraise RuntimeError('no')")],
  [python("print(undefined_name)")],
  [python("print('a' + 1)")],
  [python("print(input())"), ""],
  [python("if True\n  pass")],
  [node("const x = 2; let s = `a${x}`\nconsole.log(s, x * 3, true); process.stdout.write('end'); process.exit(x + 4)")],
  [node("console.log(undefinedName)")],
  [node("let = = 1")],
];

describe("the fake's programs behave like the real ones", () => {
  const folder = mkdtempSync(join(tmpdir(), "fake-programs-"));
  const backend = new FakeBackend();
  afterAll(async () => {
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(PROGRAMS.map(([argv, stdin]) => ({ argv, stdin })))("$argv", async ({ argv, stdin }) => {
    const [command = "", ...parameters] = argv;
    const real = spawnSync(command, parameters, { cwd: folder, input: stdin ?? "" });
    if (real.error !== undefined) throw new Error(`${command} is not on this machine.`, { cause: real.error });
    const handle = await backend.acquire(newRequest());
    const process = await start(handle, argv);
    const finished = finish(process);
    if (stdin !== undefined) await process.writeStdin(Buffer.from(stdin));
    await process.closeStdin();
    const fake = await finished;
    expect(fake.stdout).toBe(real.stdout.toString("utf8"));
    const signal = real.signal === null ? undefined : constants.signals[real.signal];
    expect(fake.exit).toMatchObject({ code: real.status ?? undefined, signal });
    expect(fake.stderr === "").toBe(real.stderr.length === 0);
    await handle.destroy();
  });
});
