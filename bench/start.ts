/**
 * `npm run bench:start`: how long `sandboxer serve` takes until it listens, for the clone's TypeScript and for the packages
 * as they are installed, in turns, each with a warm compile cache. `npm run bench:start -- 20 ../older` measures 20 rounds,
 * and compares with an older clone, too, whose dependencies are installed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { bootstrap } from "../scripts/bootstrap.mjs";
import { packPackages } from "../scripts/packages/pack-packages.ts";
import { ROOT } from "../scripts/packages/public-package.ts";
import { cpuUseOf } from "./process-cpu.ts";
import { ratiosOf, summarize } from "./statistics.ts";

const WARM_UPS = 2;
/** Prints every file that is loaded. */
const WATCH = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { process.stderr.write(url + "\\n"); return next(url, context); } });`;

interface Start {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly stderr: string;
}

const [rounds = "10", older] = process.argv.slice(2);
const folder = await mkdtemp(join(tmpdir(), "sandboxer-start-"));
try {
  await bootstrap();
  const sides = [
    ...(older === undefined ? [] : [{ name: "older", bin: binOf(resolve(older)), measured: new Array<Start>() }]),
    { name: "clone", bin: binOf(ROOT), measured: new Array<Start>() },
    { name: "installed", bin: await install(), measured: new Array<Start>() },
  ];
  for (let round = 0; round < WARM_UPS + Number(rounds); round++)
    for (const { bin, name, measured } of sides) {
      const started = await start(bin, name);
      if (round >= WARM_UPS) measured.push(started);
    }
  process.stdout.write(`medians of ${rounds} starts each; load average ${loadavg()[0]?.toFixed(1)}\n`);
  const [base] = sides;
  for (const { bin, name, measured } of sides) {
    const watch = ["--import", `data:text/javascript,${encodeURIComponent(WATCH)}`];
    const files = (await start(bin, name, watch)).stderr.match(/^file:/gm)?.length ?? 0;
    const wall = summarize(measured.map(({ wallMs }) => wallMs));
    const cpu = summarize(measured.map(({ cpuMs }) => cpuMs)).median;
    const [ms, least, most] = [wall.median, wall.minimum, wall.maximum].map((value) => value.toFixed(0));
    const ratio = ratiosOf(wall, summarize((base ?? { measured }).measured.map(({ wallMs }) => wallMs))).median;
    process.stdout.write(
      `${name.padEnd(10)} ${ms} ms (${least} to ${most}), ${cpu.toFixed(0)} ms of CPU, ${files} files, ratio ${ratio.toFixed(2)}\n`,
    );
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

function binOf(clone: string): string {
  return join(clone, "packages/cli/bin/sandboxer.mjs");
}

/** The packed packages, where they find each other; they need no other package to start. */
async function install(): Promise<string> {
  const packages = await packPackages(folder);
  await mkdir(join(folder, "staging/node_modules/@sandboxer"), { recursive: true });
  for (const { name, folder: files } of packages) await symlink(files, join(folder, "staging/node_modules", name));
  return join(folder, "staging/cli/bin/sandboxer.mjs");
}

async function start(bin: string, side: string, flags: readonly string[] = []): Promise<Start> {
  const data = await mkdtemp(join(folder, "data-"));
  const serve = ["serve", "--backend", "fake", "--port", "0", "--json", "--data-directory", data];
  const began = performance.now();
  const child = spawn(process.execPath, [...flags, bin, ...serve], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NODE_COMPILE_CACHE: join(folder, `cache-${side}`) },
  });
  let stderr = "";
  child.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
  await once(child.stdout, "data");
  const wallMs = performance.now() - began;
  const { ownMs: cpuMs } = await cpuUseOf(child.pid ?? 0);
  const closed = once(child, "close");
  // Not kill -9: the cache is written when a process ends.
  child.kill("SIGTERM");
  await closed;
  return { wallMs, cpuMs, stderr };
}
