import { expect, test } from "vitest";
import { onceForAll, SharedCalls } from "../../../src/gateway/http/shared-calls.ts";

/** Records in memory, and what was written into each. */
class Records {
  readonly cells = new Map<string, { readonly body: Uint8Array; readonly version: string }>();
  failures = 0;
  #versions = 0;

  keyOf = (kind: string, name: string): string => `${kind}/${name}`;
  keysOf = (kind: string, name: string): string[] => [this.keyOf(kind, name)];
  find = (): Promise<undefined> => Promise.resolve(undefined);
  read = (key: string) => Promise.resolve(this.cells.get(key));
  remove = (key: string): Promise<void> => Promise.resolve(void this.cells.delete(key));

  swap = (key: string, expected: string | undefined, body: Uint8Array): Promise<boolean> => {
    if (this.failures > 0) {
      this.failures -= 1;
      return Promise.reject(new Error("the store is away"));
    }
    if (this.cells.get(key)?.version !== expected) return Promise.resolve(false);
    this.cells.set(key, { body, version: String(++this.#versions) });
    return Promise.resolve(true);
  };
}

const secret = { keysFor: () => [Buffer.alloc(32, 1)] };

function server(records: Records, name: string, isAlive = true): SharedCalls {
  return new SharedCalls({
    records,
    secret: secret as never,
    instanceId: () => name,
    isAlive: () => Promise.resolve(isAlive),
  });
}

const call = {
  identity: "caller create key",
  requestDigest: "digest",
  credential: "key",
  signal: AbortSignal.timeout(60_000),
};

const state = (records: Records): unknown => {
  const [cell] = records.cells.values();
  return (JSON.parse(Buffer.from(cell?.body ?? []).toString()) as { readonly state: unknown }).state;
};

test("the end of a failed call does not remove the claim of the one that repeats it", async () => {
  const records = new Records();
  const first = await server(records, "a").claim(call);
  // The same server takes its own record over, as after the answer to the first call was sent.
  const second = await server(records, "a").claim(call);
  if (!first.claimed || !second.claimed) throw new Error("They were not claimed.");
  await first.failed();
  expect(state(records)).toBe("running");
  await second.done({ id: "s" });
  expect(await server(records, "b").claim(call)).toEqual({ claimed: false, answer: { id: "s" } });
});

test("a call that failed can be repeated at another server, and its record stays one", async () => {
  const records = new Records();
  const first = await server(records, "a").claim(call);
  if (!first.claimed) throw new Error("It was not claimed.");
  await first.failed();
  expect(state(records)).toBe("failed");
  expect(await server(records, "b").claim(call)).toMatchObject({ claimed: true });
});

test("an answer is recorded although the store fails for a moment", async () => {
  const records = new Records();
  const holder = { sharedCalls: server(records, "a"), onRecordFailure: () => {} };
  const begin = () => {
    records.failures = 1;
    return { result: Promise.resolve({ id: "s" }) };
  };
  await onceForAll<{ result: Promise<unknown> }>(holder, call, begin, () => ({ result: Promise.resolve() }));
  await expect.poll(() => state(records)).toBe("done");
});
