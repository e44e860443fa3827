import { fromText } from "../machine/byte-string.ts";
import { literal, type Language, type Program } from "./instruction.ts";
import { compileNode } from "./node-language.ts";
import { compilePython } from "./python-language.ts";
import { compileArguments, compileShell } from "./shell/compiler.ts";

/**
 * The programs of a fake sandbox: small subsets of bash, Python and JavaScript that do the same as the real ones, so
 * that one test runs on the fake and on a real backend. Other programs end with a message on stderr.
 *
 * | argv | supported |
 * |---|---|
 * | `bash -c` | `;` newline `&` `&&` `\|\|` `#`, `( )` and `{ }` (no subshell of its own), `for x in A B`, `for x in $(seq A B)`, `{A..B}`, `while LIST`, `if LIST … else … fi`, `break`, `continue`; `x=V` `$x` `${x}` `$?` `$$` `$!` `$((…))` `$(cat FILE)` `$(pwd)` (no word splitting, no globs); `> >> 2> >&2 2>&1 <` on commands and blocks; the commands below; `yes LINE \| head -n N` (or `-c N`) is the only pipe |
 * | commands, also as argv | `echo [-n]`, `printf` (%s %d \xHH \NNN), `sleep`, `exit`, `read [-r] x`, `cat [FILE…]`, `pwd`, `cd`, `export`, `printenv X`, `kill [-SIG] PID`, `wait`, `yes`, `head -c N /dev/zero`, `mkdir [-p]`, `rm [-rf]`, `ln -s`, `mv`, `touch`, `ls`, `stty size`, `test`/`[ ]`, `true`, `false`, `:` |
 * | `python3 [-u] -c` | `print(…, sep=, end=, file=sys.stderr, flush=)`, assignments and `+=` `-=`, `for x in range(…)`, `while`, `if/elif/else`, `break`, `continue`, `pass`, `raise X("…")`, `input()`, `sys.stdout/stderr.write`, `time.sleep`, `sys.exit`, `str int len`, f-strings, whole-number arithmetic, comparisons |
 * | `node -e` | `console.log/error`, `process.stdout/stderr.write`, `process.exit`, `let/const/var x = …`, template strings, arithmetic, comparisons, `require("net").createServer((c) => c.pipe(c)).listen(PORT, HOST, () => …)` |
 */
export function compile(argv: readonly string[]): Program | undefined {
  const name = argv[0]?.replace(/^(?:\/usr)?\/bin\//, "") ?? "";
  const language = LANGUAGES[name];
  if (language === undefined) return compileArguments([name, ...argv.slice(1)].map(fromText));
  const at = argv.findIndex((argument) => argument === (language === "node" ? "-e" : "-c"));
  const code = at === -1 ? undefined : argv[at + 1];
  if (code === undefined)
    return failing(language, `${name}: the fake runs only code that is given as an argument\n`, 2);
  try {
    return FRONT_ENDS[language](fromText(code));
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    const message = language === "bash" ? `bash: line 1: ${thrown.message}\n` : `SyntaxError: ${thrown.message}\n`;
    return failing(language, message, language === "bash" ? 2 : 1);
  }
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  bash: "bash",
  sh: "bash",
  python3: "python",
  python: "python",
  node: "node",
};
const FRONT_ENDS = { bash: compileShell, python: compilePython, node: compileNode } as const;

function failing(language: Language, message: string, code: number): Program {
  return { language, instructions: [{ op: "fail", message: literal(fromText(message)), code }] };
}
