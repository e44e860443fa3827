import { describe, expect, test } from "vitest";
import { allot } from "../../../../src/backends/gvisor/warm/allot.ts";
import { PoolLab, settle } from "./pool-lab.ts";

describe("the size of the pool", () => {
  test("nothing is created and nothing runs before the first request", async () => {
    const lab = new PoolLab();
    await lab.pass(120_000);
    expect(lab.made).toEqual([]);
    expect(lab.pool.figures).toMatchObject({ ready: 0, preparing: 0, handedOut: 0, missed: 0 });
  });

  test("is the number of requests in the last minute", async () => {
    const lab = new PoolLab();
    expect(await lab.take()).toBeUndefined();
    expect(await lab.take()).toBeUndefined();
    await lab.pass(3_000);
    expect(lab.pool.figures).toMatchObject({ ready: 2, missed: 2 });
  });

  test("never exceeds the limit, for all keys together", async () => {
    const lab = new PoolLab(3);
    for (let count = 0; count < 5; count++) await lab.take("one");
    await lab.take("other");
    await lab.pass(5_000);
    expect(lab.living.map(({ key }) => key).toSorted()).toEqual(["one", "one", "other"]);
  });

  test("a requested key takes a place from a key that has more than its share", async () => {
    const lab = new PoolLab(2);
    await lab.take("one");
    await lab.take("one");
    await lab.pass(3_000);
    expect(lab.living.map(({ key }) => key)).toEqual(["one", "one"]);
    await lab.take("other");
    await lab.pass(3_000);
    expect(lab.living.map(({ key }) => key).toSorted()).toEqual(["one", "other"]);
    expect(lab.pool.figures.expired).toBe(1);
  });

  test("is zero a minute after the last request, and nothing runs any more", async () => {
    const lab = new PoolLab();
    await lab.take();
    await lab.pass(50_000);
    expect(lab.pool.figures.ready).toBe(1);
    await lab.pass(15_000);
    expect(lab.living).toEqual([]);
    expect(lab.pool.figures).toMatchObject({ ready: 0, preparing: 0, expired: 1 });
    await lab.pass(300_000);
    expect(lab.made).toHaveLength(1);
  });

  test("is zero for a request that may be the only one, and one after a second request", async () => {
    const lab = new PoolLab();
    await lab.take("state", 1);
    await lab.pass(30_000);
    expect(lab.made).toEqual([]);
    await lab.take("state", 1);
    await lab.pass(3_000);
    expect(lab.pool.figures.ready).toBe(1);
    // The first request is forgotten, and the second has become the uncounted one.
    await lab.pass(40_000);
    expect(lab.living).toEqual([]);
  });

  test("is zero if the limit is 0", async () => {
    const lab = new PoolLab(0);
    expect(await lab.take()).toBeUndefined();
    await lab.pass(3_000);
    expect(lab.made).toEqual([]);
  });

  test("places are distributed in turns", () => {
    expect(allot([5, 1, 3], 4)).toEqual([2, 1, 1]);
    expect(allot([1, 1], 9)).toEqual([1, 1]);
    expect(allot([], 3)).toEqual([]);
    expect(allot([2], 0)).toEqual([0]);
  });
});

describe("the requests that get one", () => {
  test("one sandbox goes to one caller, and never to another", async () => {
    const lab = new PoolLab();
    await lab.take();
    await lab.take();
    await lab.pass(3_000);
    const [first, second] = await Promise.all([lab.take(), lab.take()]);
    expect(first).toBeDefined();
    expect(second).toBeDefined();
    expect(first).not.toBe(second);
    await lab.pass(120_000);
    expect([first?.adopted, second?.adopted]).toEqual([1, 1]);
    expect([first?.destroyed, second?.destroyed]).toEqual([false, false]);
  });

  test("nobody gets a sandbox that was created for another key", async () => {
    const lab = new PoolLab();
    await lab.take("mine");
    await lab.pass(3_000);
    expect(await lab.take("yours")).toBeUndefined();
    expect((await lab.take("mine"))?.key).toBe("mine");
  });

  test("a request waits a while for a sandbox that is being created, unless its client disconnects", async () => {
    const lab = new PoolLab();
    lab.atOnce = false;
    await lab.take();
    await lab.pass(1_000);
    const gone = new AbortController();
    const leaving = lab.take("plain", 0, gone.signal);
    await settle();
    gone.abort();
    expect(await leaving).toBeUndefined();
    lab.work[0]?.done();
    await lab.pass(1_000);
    // It was created for that caller, so nobody else gets it.
    expect(lab.made.map(({ destroyed }) => destroyed)).toEqual([true]);
    const waiting = lab.take();
    await lab.pass(15_000);
    expect(await waiting).toBeUndefined();
    lab.work[0]?.done();
    await settle();
    expect(lab.made.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  });

  test("a request during a creation gets that sandbox, which is then created with high priority", async () => {
    const lab = new PoolLab();
    lab.atOnce = false;
    await lab.take();
    await lab.pass(1_000);
    const [work] = lab.work;
    expect(work?.hurried()).toBe(false);
    const taking = lab.take();
    await settle();
    expect(work?.hurried()).toBe(true);
    // The next request finds none: that one is taken.
    expect(await lab.take()).toBeUndefined();
    work?.done();
    expect(await taking).toBe(lab.made[0]);
  });

  test("a request that waits for a failing creation gets none", async () => {
    const lab = new PoolLab();
    lab.atOnce = false;
    await lab.take();
    await lab.pass(1_000);
    const taking = lab.take();
    await settle();
    lab.work[0]?.fail();
    expect(await taking).toBeUndefined();
    expect(lab.pool.figures).toMatchObject({ handedOut: 0, missed: 2, failed: 1 });
  });

  test("an unusable sandbox is ended, and does not count", async () => {
    const lab = new PoolLab();
    await lab.take();
    await lab.pass(3_000);
    lab.adoption = async () => {
      throw new Error("does not answer");
    };
    expect(await lab.take()).toBeUndefined();
    expect(lab.made[0]?.destroyed).toBe(true);
    expect(lab.problems).toEqual(["does not answer"]);
    expect(lab.pool.figures).toMatchObject({ handedOut: 0, missed: 2, failed: 1 });
  });

  test("a sandbox for a client that disconnected is ended, and nothing has failed", async () => {
    const lab = new PoolLab();
    await lab.take();
    await lab.pass(3_000);
    lab.adoption = async () => {
      throw new Error("called off");
    };
    expect(await lab.take("plain", 0, AbortSignal.abort())).toBeUndefined();
    expect(lab.made[0]?.destroyed).toBe(true);
    expect(lab.problems).toEqual([]);
    expect(lab.pool.figures).toMatchObject({ handedOut: 0, failed: 0 });
  });

  test("a prepared sandbox that ended by itself is given to nobody", async () => {
    const lab = new PoolLab();
    await lab.take();
    await lab.pass(3_000);
    lab.made[0]?.crash();
    await settle();
    expect(await lab.take()).toBeUndefined();
    expect(lab.pool.figures).toMatchObject({ ready: 0, failed: 1 });
  });
});

describe("no sandboxes are created", () => {
  test("while the machine is busy; existing ones stay", async () => {
    const lab = new PoolLab();
    await lab.take();
    await lab.pass(3_000);
    lab.room = "busy";
    await lab.take();
    await lab.take();
    await lab.pass(5_000);
    expect(lab.made).toHaveLength(1);
    lab.room = "free";
    await lab.pass(5_000);
    expect(lab.made).toHaveLength(4);
  });

  test("while memory is short, and existing ones are ended", async () => {
    const lab = new PoolLab();
    await lab.take();
    await lab.pass(3_000);
    lab.room = "short";
    await lab.pass(3_000);
    expect(lab.made[0]?.destroyed).toBe(true);
    expect(lab.made).toHaveLength(1);
  });

  test("for a minute after a failed creation", async () => {
    const lab = new PoolLab();
    lab.atOnce = false;
    await lab.take();
    await lab.pass(1_000);
    lab.work[0]?.fail();
    for (let seconds = 0; seconds < 50; seconds += 10) {
      await lab.pass(10_000);
      await lab.take();
    }
    expect(lab.work).toEqual([]);
    expect(lab.problems).toEqual(["cannot be made"]);
    await lab.pass(15_000);
    expect(lab.work).toHaveLength(1);
  });

  test("for a removed state, and a creation in progress is discarded", async () => {
    const lab = new PoolLab();
    await lab.take("state");
    await lab.take("other");
    await lab.pass(3_000);
    lab.atOnce = false;
    await lab.take("state");
    await lab.pass(1_000);
    lab.pool.forget((key) => key === "state");
    lab.work[0]?.done();
    await settle();
    expect(lab.living.map(({ key }) => key)).toEqual(["other"]);
  });

  test("after the end; a nearly finished creation is completed with high priority, and ended", async () => {
    const lab = new PoolLab();
    lab.atOnce = false;
    await lab.take();
    await lab.pass(1_000);
    const [work] = lab.work;
    const closing = lab.pool.close();
    expect(work?.hurried()).toBe(true);
    work?.done();
    await closing;
    expect(lab.made.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(lab.problems).toEqual([]);
  });

  test("after the end; a longer creation is cancelled", async () => {
    const lab = new PoolLab();
    await lab.take();
    await lab.take();
    await lab.pass(1_000);
    lab.atOnce = false;
    await lab.take();
    await lab.pass(1_000);
    const closing = lab.pool.close();
    await lab.pass(3_000);
    await closing;
    expect(lab.living).toEqual([]);
    expect(await lab.take()).toBeUndefined();
    await lab.pool.close();
    expect(lab.problems).toEqual([]);
    expect(lab.pool.figures).toMatchObject({ ready: 0, preparing: 0 });
  });
});
