import type { Head } from "@sandboxer/protocol";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { CrashServer } from "./support/crash-server.ts";
import { DURABLE, KILLED } from "./support/pair.ts";
import { contentOf, write } from "./support/survivor.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of kill -9 with max_loss on gVisor are skipped: ${missing}`);

describe.skipIf(missing !== undefined)("kill -9 on gVisor, of a server that was promised to lose one execution", () => {
  test("another server continues with the newest live checkpoint and its processes", async () => {
    const store = await temporaryFolder();
    const common = { store, backend: "gvisor", leaseTtl: "2s" } as const;
    const survivor = await CrashServer.start(common);
    const doomed = await CrashServer.start(common);
    const { client, id } = await doomed.create({ ...DURABLE, max_loss: 1 });
    const head = async (): Promise<Head> =>
      JSON.parse(await readFile(join(store, id, "metadata.json"), "utf8")) as Head;
    const saved = (): Promise<string | undefined> => head().then(({ checkpoint }) => checkpoint?.name);

    await client.run("bash", "sleep 1000 & echo $! > pid").until("EXECUTION_DONE");
    await eventually("it was saved", async () => (await saved()) !== undefined, 60_000);
    const first = await saved();
    await write(client, "old");
    await eventually("it was saved again", async () => (await saved()) !== first, 60_000);
    expect(await head()).toMatchObject({ state: "live", epoch: 1, checkpoint: { parent: first } });
    expect(await contentOf(client)).toBe("old");

    doomed.kill("SIGKILL");
    expect(await doomed.exited).toEqual(KILLED);
    const fresh = survivor.attach(id);
    await fresh.until("RUNNING");
    expect(await contentOf(fresh)).toBe("old");
    const alive = await fresh.run("bash", "kill -0 $(cat pid) && echo alive").until("EXECUTION_DONE");
    expect(alive).toContain("out:alive\n");
    expect((await head()).epoch).toBe(2);
  });
});
