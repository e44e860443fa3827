import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SandboxerError } from "@sandboxer/protocol";
import { encodeFrame } from "../../../src/backends/agent/frame-decoder.ts";
import { Reply } from "../../../src/backends/agent/frame-types.ts";
import { PayloadWriter } from "../../../src/backends/agent/payload.ts";
import { HostileAgent } from "../../backends/gvisor/support/hostile-agent.ts";
import { fuzz } from "./support/fuzz.ts";

const TYPES = [...Object.values(Reply), 0x00, 0x01, 0x82, 0xff];
const FRAMES = 30;

/** A field of a payload: numbers that are often right (the first process, the first offset) or at a border. */
const field: fc.Arbitrary<(payload: PayloadWriter) => PayloadWriter> = fc.oneof(
  fc.constantFrom(0, 1, 2, 255).map((value) => (payload: PayloadWriter) => payload.u8(value)),
  fc.constantFrom(0, 1, 2, 7, 0xffff_ffff).map((value) => (payload: PayloadWriter) => payload.u32(value)),
  fc.constantFrom(0, 1, 80, Number.MAX_SAFE_INTEGER).map((value) => (payload: PayloadWriter) => payload.u64(value)),
  fc.constantFrom(-1n, 2n ** 63n - 1n).map((value) => (payload: PayloadWriter) => payload.i64(value)),
  fc.string({ maxLength: 20 }).map((value) => (payload: PayloadWriter) => payload.string(value)),
  fc.uint8Array({ maxLength: 80 }).map((value) => (payload: PayloadWriter) => payload.bytes(value)),
);
/** Most answer one of the first requests, which wait. */
const frame = fc
  .tuple(fc.constantFrom(...TYPES), fc.nat(20), fc.array(field, { maxLength: 6 }))
  .map(([type, request, fields]) =>
    encodeFrame(type, request, fields.reduce((payload, put) => put(payload), new PayloadWriter()).finish()),
  );
/** Bytes of frames with some of them changed, cut anywhere. */
const stream = fc
  .tuple(
    fc.array(fc.oneof({ weight: 5, arbitrary: frame }, fc.uint8Array({ maxLength: 40 })), { maxLength: FRAMES }),
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }),
  )
  .map(([parts, flips]) => {
    const bytes = Buffer.concat(parts);
    for (const [at, value] of flips) if (bytes.length > 0) bytes[at % bytes.length] = value;
    return bytes;
  });

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
beforeAll(() => void process.on("unhandledRejection", onUnhandled));
afterAll(() => void process.off("unhandledRejection", onUnhandled));

test("whatever an agent sends, every call is answered or fails as sandbox_failed", async () => {
  await fuzz({
    name: "agent",
    share: 0.1,
    inputsOfTry: 1,
    // With root inside, programs may have taken over the agent.
    input: fc.tuple(stream, fc.integer({ min: 1, max: 64 }), fc.boolean()),
    check: async ([bytes, pieceBytes, rootInside]) => {
      const agent = new HostileAgent(rootInside);
      const calls = agent.askEverything();
      for (let at = 0; at < bytes.length; at += pieceBytes) agent.output.write(bytes.subarray(at, at + pieceBytes));
      agent.output.end();
      for (const outcome of await Promise.allSettled(calls)) {
        if (outcome.status === "rejected") expect(outcome.reason).toBeInstanceOf(SandboxerError);
      }
      expect(agent.failures).toHaveLength(1);
      expect(agent.failures[0]?.code).toBe("sandbox_failed");
      await expect(agent.client.ping()).rejects.toMatchObject({ code: "sandbox_failed" });
    },
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});
