/**
 * `npm run bench:start`: how long `sandboxer serve` takes until it listens, for the clone's TypeScript and for the packages
 * as they are installed, in turns, each with a warm compile cache. `npm run bench:start -- 20` measures 20 rounds.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

const rounds = Number(process.argv[2] ?? 10);
const folder = await mkdtemp(join(tmpdir(), "sandboxer-start-"));
try {
  await bootstrap();
  const clone = join(ROOT, "packages/cli/bin/sandboxer.mjs");
  const installed = await install();
  const sides = { clone, installed };
  const measured: Record<keyof typeof sides, Start[]> = { clone: [], installed: [] };
  for (let round = 0; round < WARM_UPS + rounds; round++)
    for (const side of ["clone", "installed"] as const) {
      const started = await start(sides[side], side);
      if (round >= WARM_UPS) measured[side].push(started);
    }
  const wall = (side: keyof typeof sides) => summarize(measured[side].map(({ wallMs }) => wallMs));
  process.stdout.write(`medians of ${rounds} starts each\n`);
  for (const side of ["clone", "installed"] as const) {
    const watch = ["--import", `data:text/javascript,${encodeURIComponent(WATCH)}`];
    const files = (await start(sides[side], side, watch)).stderr.match(/^file:/gm)?.length ?? 0;
    const cpu = summarize(measured[side].map(({ cpuMs }) => cpuMs)).median;
    const times = `${wall(side).median.toFixed(0)} ms, ${cpu.toFixed(0)} ms of CPU`;
    process.stdout.write(`${side.padEnd(10)} ${times}, ${files} files\n`);
  }
  process.stdout.write(`installed takes ${ratiosOf(wall("installed"), wall("clone")).median.toFixed(2)} of the time\n`);
} finally {
  await rm(folder, { recursive: true, force: true });
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
