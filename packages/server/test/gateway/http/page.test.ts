import { expect, test } from "vitest";
import { pageOfList } from "../../../src/gateway/http/page.ts";

const item = (id: string, second: number) => ({ id, created_at: new Date(second * 1000).toISOString() });
const ids = (items: readonly { id: string }[]) => items.map(({ id }) => id).join("");

test("a list continues after the position of a removed item, even among items of the same time", () => {
  const all = [item("e", 3), item("a", 2), item("b", 2), item("c", 2), item("d", 1)];
  const page = pageOfList(all, { limit: 3 });
  expect(ids(page.items)).toBe("eab");
  const cursor = page.next_cursor ?? "";
  const later = [item("f", 4), ...all];
  expect(ids(pageOfList(later, { limit: 3, cursor }).items)).toBe("cd");
  const without = later.filter(({ id }) => id !== "b");
  expect(ids(pageOfList(without, { limit: 3, cursor }).items)).toBe("cd");
  expect(pageOfList(all.slice(0, 2), { limit: 3, cursor })).toEqual({ items: [], next_cursor: null });
});
