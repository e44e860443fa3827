import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { expect, onTestFinished, test, vi } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { bytes } from "./store-contract.ts";
import { movedFolder } from "../../../../test/kit/vanishing-folder.ts";

/** Puts something around the next reading of a folder, in every module that imports `readdir`. */
function aroundReaddir(around: (read: () => Promise<unknown>) => Promise<unknown>) {
  const { readdir } = files;
  const spy = vi
    .spyOn(files, "readdir")
    .mockImplementationOnce(((...parameters: Parameters<typeof readdir>) =>
      around(() => readdir(...parameters))) as never);
  syncBuiltinESMExports();
  onTestFinished(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
  return spy;
}

test("a cell whose store comes back between the reads of its versions and its view has its version", async () => {
  const folder = await movedFolder();
  const store = await openStore(folder.path);
  const written = await store.swapCell("a.json", undefined, bytes("1"));
  const read = aroundReaddir(async (look) => {
    await folder.vanish();
    const found = await look().catch((error: unknown) => error);
    await folder.comeBack();
    if (found instanceof Error) throw found;
    return found;
  });
  expect({ outcome: "written", version: (await store.readCell("a.json"))?.version }).toEqual(written);
  expect(read).toHaveBeenCalled();
});
