/**
 * `npm run console-pictures`: makes the pictures of the console in docs/images again, on a real server with gVisor, which needs
 * root and a chromium. `npm run console-pictures -- handoff` makes only those of one file.
 */
import { findChromium, prepareChromium } from "../test/kit/services/chromium.ts";
import { planGvisorSuites } from "./testing/engines.ts";
import { runSuite } from "./testing/run-suite.ts";
import { vitestSuite } from "./testing/suite.ts";

const LIMIT_MS = 10 * 60_000;

await prepareChromium((line) => process.stdout.write(`${line}\n`));
const [chromium, engines] = await Promise.all([findChromium(), planGvisorSuites()]);
const engine = engines.findLast((suite) => "env" in suite);
if ("missing" in chromium) fail(chromium.missing);
else if (engine === undefined || !("env" in engine)) fail("gVisor cannot run here.");
else {
  const suite = vitestSuite("console-pictures", LIMIT_MS, engine.on, engine.env);
  const { failed } = await runSuite({ ...suite, argv: [...suite.argv, ...process.argv.slice(2)] });
  process.exitCode = failed === 0 ? 0 : 1;
}

function fail(why: string): void {
  process.stderr.write(`${why}\n`);
  process.exitCode = 1;
}
