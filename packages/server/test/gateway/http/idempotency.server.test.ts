import { expect, test } from "vitest";
import { IdempotentCalls } from "../../../src/gateway/http/idempotency.ts";

const MIB = 1024 * 1024;

async function answered(calls: IdempotentCalls<{ result: Promise<string> }>, key: string, bytes: number) {
  let begun = 0;
  const { result } = await calls.once(key, "", async () => {
    begun += 1;
    return { result: Promise.resolve("x".repeat(bytes)) };
  });
  await result;
  return begun === 1 ? "anew" : "kept";
}

test("an answer that is too large for it is not kept", async () => {
  const calls = new IdempotentCalls<{ result: Promise<string> }>(() => 0);
  await answered(calls, "small", 1000);
  await answered(calls, "large", 2 * MIB);
  expect(await answered(calls, "small", 1000)).toBe("kept");
  expect(await answered(calls, "large", 10)).toBe("anew");
});

test("the oldest answers are dropped when all together are too large", async () => {
  const calls = new IdempotentCalls<{ result: Promise<string> }>(() => 0);
  for (let number = 0; number < 80; number += 1) await answered(calls, String(number), MIB - 100);
  expect(await answered(calls, "79", 10)).toBe("kept");
  expect(await answered(calls, "0", 10)).toBe("anew");
});
