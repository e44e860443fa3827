import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isRoot, startAgent } from "./support/agent.ts";
import { buildPlainAgent } from "./support/build.ts";
import { Type, str, u32, u64, u8 } from "./support/wire.ts";

const PIECE_BYTES = 262_144;

/** The memory of the agent itself, without the pages of its program file. */
function memoryKb(pid: number | undefined): number {
  const line = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1]);
}

test("whenever it is quiesced, the agent has released the memory of large requests and replies", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sandboxer-agent-memory-"));
  try {
    const path = join(folder, "large");
    writeFileSync(path, Buffer.alloc(4 * PIECE_BYTES, "x"), { mode: 0o666 });
    const agent = await startAgent([buildPlainAgent()]);
    const before = memoryKb(agent.child.pid);
    for (let round = 1; round <= 4; round++) {
      const pieces = Array.from({ length: 16 }, (_, number) =>
        agent.call(Type.fileRead, u8(isRoot ? 1 : 0), u64((number % 4) * PIECE_BYTES), u32(PIECE_BYTES), str(path)),
      );
      for (const piece of pieces) expect((await piece).length).toBe(PIECE_BYTES);
      // From then on, glibc would keep smaller blocks.
      if (round === 1) await agent.call(Type.ping, Buffer.alloc(900_000));
      await agent.call(Type.quiesce);
      // The agent frees the reply right after it was sent.
      await agent.until("its memory back", () => memoryKb(agent.child.pid) < before + 300);
      await agent.call(Type.resume);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
