import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { CrashServer } from "./support/crash-server.ts";
import { DURABLE } from "./support/pair.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of the end of a server on gVisor are skipped: ${missing}`);

/** Its memory exists nowhere else. */
const COUNT = "import time\nfor i in range(1, 101): print(i, flush=True); time.sleep(0.05)";
const ALL = Array.from({ length: 100 }, (_, index) => `${index + 1}\n`).join("");

describe.skipIf(missing !== undefined)("a server that is stopped while its store is unreachable", () => {
  test.each(["the store comes back", "it is killed before the store comes back"])(
    "loses nothing of a running program when %s",
    async (fate) => {
      const [folder, dataDirectory] = [await temporaryFolder(), await temporaryFolder()];
      const store = join(folder, "store");
      const start = (): Promise<CrashServer> =>
        CrashServer.start({ store, dataDirectory, backend: "gvisor", leaseTtl: "2s" });
      const server = await start();
      const { client, id } = await server.create(DURABLE);
      await client.run("python", COUNT).until("out:");
      await rename(store, `${store}.away`);
      await writeFile(store, "in the way");
      const giveBack = async (): Promise<void> => {
        await rm(store);
        await rename(`${store}.away`, store);
      };
      server.kill("SIGTERM");
      await expect.poll(() => server.log).toContain("sandboxes are kept");
      const kept = async (): Promise<string[]> => readdir(join(dataDirectory, "unpublished"), { recursive: true });
      expect((await kept()).some((name) => name.endsWith(`${id}/checkpoint.json`))).toBe(true);
      if (fate === "the store comes back") {
        await giveBack();
        expect(await server.exited).toEqual({ code: 0, signal: null });
      } else {
        server.kill("SIGKILL");
        await server.exited;
        await giveBack();
      }
      const again = (await start()).attach(id);
      await again.until("RUNNING");
      await again.send({ action: "reconnect" }).until("EXECUTION_DONE");
      expect(client.output + again.output).toBe(ALL);
      expect(await kept()).toEqual([]);
    },
  );
});
