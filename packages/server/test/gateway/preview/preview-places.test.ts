import { expect, test } from "vitest";
import { NOBODY, type Principal } from "../../../src/gateway/access/principal.ts";
import { PreviewPlaces } from "../../../src/gateway/preview/preview-places.ts";

const ALL = 20;
const ANONYMOUS: Principal = { ...NOBODY, kind: "anonymous" };

/** Takes places of one sandbox after another until there are no more for this visitor. */
function takeAll(places: PreviewPlaces, who: Principal, address: string): (() => void)[] {
  const taken: (() => void)[] = [];
  for (let sandbox = 0; sandbox < ALL; sandbox += 1) {
    try {
      for (;;) taken.push(places.take(`${address} ${sandbox}`, { who, address }));
    } catch {
      // This sandbox, or the visitor, has all of its share.
    }
  }
  return taken;
}

const key = (id: string): Principal => ({ ...NOBODY, kind: "key", id });

test("neither a sandbox nor an address nor a key can take all places", () => {
  const places = new PreviewPlaces(ALL);
  const visitor = { who: ANONYMOUS, address: "127.0.0.1" };
  const ofSandbox = Array.from({ length: ALL / 4 }, () => places.take("one", visitor));
  expect(() => places.take("one", visitor)).toThrow("5 open requests to ports of the sandbox");
  for (const leave of ofSandbox) leave();
  const strangers = takeAll(places, NOBODY, "192.0.2.1");
  expect(strangers).toHaveLength(ALL / 2);
  expect(() => places.take("two", { who: NOBODY, address: "192.0.2.1" })).toThrow("from the address 192.0.2.1");
  for (const leave of [...strangers, ...strangers]) leave();
  const byKey = takeAll(places, key("mine"), "192.0.2.1");
  expect(byKey).toHaveLength((ALL * 4) / 5);
  expect(takeAll(places, NOBODY, "192.0.2.2")).toHaveLength(ALL / 5);
  expect(() => places.take("two", { who: key("other"), address: "192.0.2.3" })).toThrow("ports of the server");
});

test("a server without keys has no limit for each key", () => {
  expect(takeAll(new PreviewPlaces(ALL), ANONYMOUS, "127.0.0.1")).toHaveLength(ALL);
});
