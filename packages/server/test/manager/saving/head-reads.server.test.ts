import { expect, test } from "vitest";
import type { ObjectStore } from "../../../src/store/store.ts";
import { HttpClient } from "../../gateway/http/support.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

test.each([
  ["a pause looks once whether another server has published since", {}, 1],
  ["a checkpoint of a sandbox that keeps running reads no head", { leave_running: true }, 0],
])("%s", async (_what, body, reads) => {
  const read: string[] = [];
  const wrapStore = (store: ObjectStore): ObjectStore =>
    new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...given: unknown[]): unknown => {
          if (name === "readCell") read.push(String(given[0]));
          return Reflect.apply(value, target, given);
        };
      },
    });
  const http = new HttpClient(await startTestServer({ wrapStore }));
  const { id } = await http.create();
  read.length = 0;
  const { checkpoint } = (await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, body)).body as {
    checkpoint: { name: string };
  };
  expect(checkpoint.name).toMatch(/^checkpoint_/);
  expect(read.filter((key) => key === `${id}/metadata.json`)).toHaveLength(reads);
});
