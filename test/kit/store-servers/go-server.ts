import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { findGo, goInstall, tellingLine } from "../../../packages/server/src/setup/index.ts";
import { SERVERS_FOLDER } from "./test-server.ts";

/** Builds a program of a Go module, pinned, into the folder of servers. */
export async function installGoProgram(module: string, program: string, signal: AbortSignal): Promise<void> {
  const go = findGo(process.env["PATH"] ?? "");
  if (go === undefined) throw new Error(`There is no Go to build ${module} with.`);
  await mkdir(SERVERS_FOLDER, { recursive: true });
  const scratch = await mkdtemp(join(SERVERS_FOLDER, "building-"));
  try {
    const result = await goInstall(go, [module], { signal, env: { GOBIN: scratch, CGO_ENABLED: "0" } });
    if (result.code !== 0) throw new Error(`Go cannot build ${module}: ${tellingLine(result)}`);
    await rename(join(scratch, basename(module.split("@")[0] ?? "")), program);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
