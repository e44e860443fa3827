import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchArguments } from "./arguments.ts";
import type { CleanUp } from "./clean-up.ts";
import type { Lab } from "./lab.ts";
import { readServerSpec } from "./raw/bundle.ts";
import { RawEngine } from "./raw/raw-engine.ts";
import { ClientSession } from "./server/client-session.ts";
import { engineOf, startServer } from "./server/server-process.ts";
import { NOTHING_AHEAD } from "./server/warm-server.ts";

/** A server, and the same engine without one. */
export async function openLab(options: BenchArguments, cleanUp: CleanUp): Promise<Lab> {
  const scratch = await mkdtemp(join(tmpdir(), "sandboxer-bench-"));
  cleanUp.add(() => rm(scratch, { recursive: true, force: true }));
  const progress = (line: string): void => void process.stderr.write(`${line}\n`);
  progress("Starting the server");
  const flags = [NOTHING_AHEAD, ...(options.runscPath === undefined ? [] : [`--runsc=${options.runscPath}`])];
  const places = { store: join(scratch, "store"), dataHome: join(scratch, "data") };
  const server = await startServer({ ...places, flags }, cleanUp);
  const engine = await engineOf(server);
  const sample = await ClientSession.create(server.url);
  const raw = new RawEngine(engine, await readServerSpec(server.runDirectory), join(scratch, "raw"), cleanUp);
  await raw.open();
  await sample.destroy();
  const { effort, liveCount, prices } = options;
  return {
    server,
    engine,
    raw,
    quick: effort !== "full",
    effort,
    liveCount,
    prices,
    scratch,
    cleanUp,
    versions: {},
    skipped: [],
    progress,
  };
}
