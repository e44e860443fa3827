/**
 * `npm run test:hostile`: attacks by a hostile client, store or sandbox. Runs every `*.hostile.test.ts`, the fuzzers
 * among them: `--inputs 200000` tries that many inputs (default: 5000, as in `npm test`), `--seed N` those of one run.
 *
 * `--soak SECONDS` instead creates and deletes sandboxes on a real server for this long, and fails if its memory,
 * descriptors, cgroups or folders grow. `--backend fake|gvisor|all`: by default both share the time; without root or an
 * engine the fake backend has it all.
 */
import { parseArgs } from "node:util";
import { runSoak } from "../packages/server/test/system/hostile/soak/run-soak.ts";
import { newestEngineFlags } from "./testing/engines.ts";
import { runSuite } from "./testing/run-suite.ts";
import { vitestSuite } from "./testing/suite.ts";

const { values } = parseArgs({
  options: {
    inputs: { type: "string", default: "5000" },
    seed: { type: "string" },
    soak: { type: "string" },
    backend: { type: "string", default: "all" },
  },
});

/** A few hundred inputs take a second on a busy machine. */
const MS_OF_INPUT = 50;
const TESTS_MS = 15 * 60_000;

process.exitCode = values.soak === undefined ? await attack() : await soak(whole(values.soak));

async function attack(): Promise<number> {
  const inputs = whole(values.inputs);
  const timeoutMs = TESTS_MS + inputs * MS_OF_INPUT;
  const seed = values.seed === undefined ? {} : { SANDBOXER_HOSTILE_SEED: String(whole(values.seed)) };
  const suite = vitestSuite("hostile", timeoutMs, `${inputs} inputs`, {
    SANDBOXER_HOSTILE_INPUTS: String(inputs),
    ...seed,
  });
  const { failed } = await runSuite({ ...suite, argv: [...suite.argv, `--testTimeout=${timeoutMs}`] });
  return failed === 0 ? 0 : 1;
}

async function soak(seconds: number): Promise<number> {
  const engine = values.backend === "fake" ? undefined : await newestEngineFlags();
  if (values.backend === "gvisor" && engine === undefined) return 1;
  const parts = [
    ...(values.backend === "gvisor" ? [] : [{ backend: "fake" as const, flags: [] }]),
    ...(engine === undefined ? [] : [{ backend: "gvisor" as const, flags: engine }]),
  ];
  let failed = 0;
  for (const { backend, flags } of parts) {
    const share = seconds / parts.length;
    print(`\n== ${backend}, ${Math.round(share)} s`);
    const { lives, failures } = await runSoak({ backend, seconds: share, flags, say: print });
    for (const failure of failures) print(`FAILED: ${failure}`);
    print(`${backend}: ${lives} sandboxes, ${failures.length === 0 ? "nothing grows" : `${failures.length} failures`}`);
    failed += failures.length;
  }
  return failed === 0 ? 0 : 1;
}

function whole(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  process.stderr.write(`"${text}" is not a whole number above 0.\n`);
  process.exit(2);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
