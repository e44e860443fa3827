import type * as Files from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { bytes } from "./store-contract.ts";
import { movedFolder } from "../../../../test/kit/vanishing-folder.ts";

const readdir = vi.hoisted(() => ({
  around: undefined as ((read: () => Promise<unknown>) => Promise<unknown>) | undefined,
}));

vi.mock("node:fs/promises", async (original) => {
  const files = await original<typeof Files>();
  const wrapped = (...parameters: Parameters<typeof files.readdir>): Promise<unknown> => {
    const read = (): Promise<unknown> => files.readdir(...parameters);
    const { around } = readdir;
    readdir.around = undefined;
    return around === undefined ? read() : around(read);
  };
  return { ...files, readdir: wrapped };
});

test("a cell whose store comes back between the looks at its versions and at its view has its version", async () => {
  const folder = await movedFolder();
  const store = await openStore(folder.path);
  const written = await store.swapCell("a.json", undefined, bytes("1"));
  readdir.around = async (read) => {
    await folder.vanish();
    const found = await read().catch((error: unknown) => error);
    await folder.comeBack();
    if (found instanceof Error) throw found;
    return found;
  };
  expect({ outcome: "written", version: (await store.readCell("a.json"))?.version }).toEqual(written);
});
