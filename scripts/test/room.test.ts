import { expect, test } from "vitest";
import { Room } from "../testing/room.ts";

/** Work that ends on request, and the list of running work. */
function lab(width: number) {
  const room = new Room(width);
  const underWay = new Map<string, () => void>();
  const begun: string[] = [];
  const add = (name: string, rank: number, weight: number): Promise<void> =>
    room.use(rank, weight, async () => {
      begun.push(name);
      await new Promise<void>((resolve) => void underWay.set(name, resolve));
      underWay.delete(name);
    });
  const end = async (name: string): Promise<void> => {
    underWay.get(name)?.();
    await settled();
  };
  return { add, end, begun, now: () => [...underWay.keys()] };
}

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test("work that fits runs side by side, by rank; larger work waits and lets smaller work pass", async () => {
  const { add, end, begun, now } = lab(4);
  const all = [add("late", 3, 2), add("unit", 1, 3), add("small", 2, 1), add("other", 4, 1)];
  await settled();
  expect(now()).toEqual(["unit", "small"]);
  await end("small");
  expect(now()).toEqual(["unit", "other"]);
  await end("unit");
  expect(now()).toEqual(["other", "late"]);
  await end("other");
  await end("late");
  await Promise.all(all);
  expect(begun).toEqual(["unit", "small", "other", "late"]);
});

test("work that is wider than the room runs alone", async () => {
  const { add, end, now } = lab(2);
  const all = [add("wide", 1, 9), add("small", 2, 1)];
  await settled();
  expect(now()).toEqual(["wide"]);
  await end("wide");
  expect(now()).toEqual(["small"]);
  await end("small");
  await Promise.all(all);
});

test("failed work makes room, and its error reaches the caller", async () => {
  const room = new Room(1);
  const failing = room.use(1, 1, () => Promise.reject(new Error("broken")));
  const next = room.use(2, 1, () => Promise.resolve("next"));
  await expect(failing).rejects.toThrow("broken");
  expect(await next).toBe("next");
});
