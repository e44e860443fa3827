import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startAgent } from "./support/agent.ts";
import { Type, frame, list, str, u16, u32, u64, u8 } from "./support/wire.ts";

/** mulberry32: small, and the same everywhere. */
function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const seed = Number(process.env["AGENT_FUZZ_SEED"] ?? Date.now() % 1_000_000_007);

test.each([0, 1, 2, 3])(
  `random and mutated frames do no harm (seed ${seed} + %i; repeat with AGENT_FUZZ_SEED)`,
  async (variant) => {
    const agent = await startAgent();
    const pick = random(seed + variant);
    const folder = mkdtempSync(join(tmpdir(), "agent-fuzz-"));
    const path = () => str(join(folder, ["a", "b", "a/c", "", "b/../a", "d"][pick(6)] as string));
    const process = () => u32(pick(12));
    const valid: (() => [number, Buffer[]])[] = [
      () => [Type.hello, [u32(1), u32(pick(3) * 20)]],
      () => [Type.ping, [Buffer.alloc(pick(3000), "p")]],
      () => [
        Type.spawn,
        [
          u8(pick(4)),
          u16(pick(100)),
          u16(pick(100)),
          u32(1000),
          u32(1000),
          str(["", "", "key"][pick(3)] as string),
          str("/"),
          list([["cat", "true", "nope", "yes"][pick(4)] as string]),
          list(["PATH=/usr/bin:/bin"]),
        ],
      ],
      () => [Type.stdin, [process(), Buffer.alloc(pick(100_000), "\xe2\x82")]],
      () => [Type.stdinClose, [process()]],
      () => [Type.signal, [process(), u32([9, 15, 19, 18, 2][pick(5)] as number), u8(pick(3))]],
      () => [Type.resize, [process(), u16(pick(70)), u16(pick(70))]],
      () => [Type.window, [process(), u8(pick(2)), u64(pick(5000)), u64(pick(5000)), u64(pick(2_000_000))]],
      () => [Type.processes, []],
      () => [Type.forget, [process()]],
      () => [Type.quiesce, []],
      () => [Type.resume, []],
      () => [Type.restored, [u64(pick(99)), str("host"), str("id"), Buffer.alloc(pick(20))]],
      () => [Type.freeze, []],
      () => [Type.thaw, []],
      () => [Type.fileStat, [u8(pick(2)), path()]],
      () => [Type.fileList, [u8(pick(2)), u32(pick(4)), path()]],
      () => [Type.fileRead, [u8(1), u64(pick(99)), u32(pick(9999)), path()]],
      () => [Type.fileWrite, [u8(1), u8(pick(16)), u32(pick(0o777)), u64(pick(9999)), path(), Buffer.alloc(pick(999))]],
      () => [Type.fileMkdir, [u8(1), u8(pick(2)), u32(0o755), path()]],
      () => [Type.fileRename, [u8(1), path(), path()]],
      () => [Type.fileSymlink, [u8(1), str("a"), path()]],
      () => [Type.fileLink, [u8(1), path(), path()]],
      () => [Type.fileAttributes, [u8(pick(2)), path()]],
      () => [Type.fileSetAttribute, [u8(1), path(), str("user.a"), Buffer.alloc(pick(999))]],
      () => [Type.connect, [u16(1 + pick(60_000))]],
      () => [Type.connectionWrite, [u32(pick(4)), Buffer.alloc(pick(100))]],
      () => [Type.connectionClose, [u32(pick(4))]],
      () => [Type.connectionWindow, [u32(pick(4)), u64(pick(100))]],
      () => [Type.listen, [u16(pick(2) * (30_000 + pick(30_000)))]],
      () => [Type.processTable, []],
    ];
    // Mutation may turn a path into another: requests that change files are sent unmutated.
    const harmless = (type: number) => type < Type.fileWrite || type > Type.fileSetAttribute;
    try {
      for (let batch = 0; batch < 40; batch++) {
        const frames: Buffer[] = [];
        for (let count = 0; count < 30; count++) {
          const [type, parts] = (valid[pick(valid.length)] as () => [number, Buffer[]])();
          let payload = Buffer.concat(parts);
          const way = pick(5);
          if (harmless(type) && way === 0)
            for (let flips = 1 + pick(4); flips > 0 && payload.length > 0; flips--)
              payload[pick(Math.min(payload.length, 64))] = pick(256);
          if (way === 1) payload = payload.subarray(0, pick(payload.length + 1));
          if (way === 2 && harmless(type)) payload = Buffer.concat([payload, Buffer.alloc(pick(9), pick(256))]);
          // Frames without a valid type; some are too long.
          const odd = way === 3 && pick(4) === 0;
          const random = Buffer.from(Array.from({ length: pick(60) }, () => pick(256)));
          frames.push(
            odd
              ? frame(0x40 + pick(192), pick(2) * 0x7000_0000, pick(30) === 0 ? Buffer.alloc(1_100_000) : random)
              : frame(type, pick(4) === 0 ? 0 : 0x7000_0000 + count, payload),
          );
        }
        const bytes = Buffer.concat(frames);
        for (let at = 0; at < bytes.length;) {
          const size = 1 + pick(200_000);
          agent.raw(bytes.subarray(at, (at += size)));
        }
        agent.raw(Buffer.concat([frame(Type.resume, 0), frame(Type.thaw, 0)]));
        await agent.ping();
        agent.events.length = 0;
      }
      await agent.signal(0, 9, 2);
      await agent.end();
      expect(agent.stderr).not.toMatch(/Sanitizer|runtime error/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
