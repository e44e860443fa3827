import { readdir, truncate } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { resumeAcrossProcesses } from "./support/resume-contract.ts";
import { ResumeLab, type ResumeServer } from "./support/resume-lab.ts";

const open = (): Promise<ResumeLab> => ResumeLab.open({ flags: ["--backend", "fake"] });

describe("resuming across processes, on the fake backend", () => {
  resumeAcrossProcesses(open, { keepsUnsaved: false });

  test("of two live servers, the called one gets it, with the data of the other", async () => {
    const lab = await open();
    const [one, two] = [await lab.start(), await lab.start()];
    await one.run("echo one > marker");
    expect(await two.run("cat marker; echo two >> marker")).toBe("one\n");
    expect(await one.run("cat marker")).toBe("one\ntwo\n");
    expect([await one.tiers(), await two.tiers()]).toEqual([["fresh", "reattached"], ["reattached"]]);
    expect(await two.only()).toMatchObject({ state: "running", owner: { here: false } });
  });

  test("of several with one key the newest that can be resumed wins, and the others are deleted", async () => {
    const lab = await open();
    const first = await lab.start();
    const ids = [await made(first, "oldest"), await made(first, "newer"), await made(first, "newest")];
    expect(await first.stop()).toBe(0);
    const folder = join(lab.store, ids[2] ?? "");
    const images = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".img"));
    expect(images).toHaveLength(1);
    await truncate(join(folder, images[0] ?? ""), 100);

    const second = await lab.start();
    expect(await second.run("cat marker")).toBe("newer\n");
    expect((await second.only()).id).toBe(ids[1]);
    expect(await second.tiers()).toEqual(["reattached"]);
    const { body } = await second.http.call<{ items: { id: string }[] }>("GET", "/v1/sandboxes?state=destroyed");
    expect(body.items.map(({ id }) => id).toSorted()).toEqual([ids[0], ids[2]].toSorted());
  });
});

/** Made with the key, but not by asking for it. */
async function made(server: ResumeServer, marker: string): Promise<string> {
  const { id } = await server.http.create({ key: "my-convo" });
  await server.http.call("POST", `/v1/sandboxes/${id}/exec`, { shell: `echo ${marker} > marker` });
  return id;
}
