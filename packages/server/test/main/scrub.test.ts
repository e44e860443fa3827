import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ImageStore } from "../../src/checkpoints/image-store.ts";
import { parseConfig } from "../../src/main/config.ts";
import { scrubStoreAt } from "../../src/main/scrub.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

test("a scrub without a server caches fetched packs in the data directory", async () => {
  const [store, data] = [await temporaryFolder(), await temporaryFolder()];
  await (await DirectoryStore.open(store)).writeText("instances/note", "a store");
  const env = { SANDBOXER_STORE: store, SANDBOXER_DATA_DIRECTORY: data };
  const config = parseConfig({ flags: {}, env, homeDirectory: "/home/somebody", serving: false });
  expect(config.dataDirectory).toBe(data);
  const scrub = vi.spyOn(ImageStore.prototype, "scrub");
  await scrubStoreAt({ ...config, store }, { rateMb: undefined });
  expect(scrub.mock.lastCall?.[0]).toMatchObject({ workDirectory: join(data, "cache") });
  scrub.mockRestore();
});
