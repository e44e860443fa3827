import { expect, test } from "vitest";
import type { ResumeLab } from "./resume-lab.ts";

const TIMEOUT_MS = 120_000;

export interface Expectations {
  /** Data written after the last save survives kill -9: the provider has it, not the store. */
  readonly keepsUnsaved: boolean;
}

/** Holds on every backend for servers, and for `sandboxer run --key`, as separate processes. */
export function resumeAcrossProcesses(open: () => Promise<ResumeLab>, { keepsUnsaved }: Expectations): void {
  test("the next process reads the data of the previous one, even after kill -9", { timeout: TIMEOUT_MS }, async () => {
    const lab = await open();
    const first = await lab.start();
    await first.run("echo one > marker");
    expect(await first.tiers()).toEqual(["fresh"]);
    const { id } = await first.only();
    expect(await first.stop()).toBe(0);

    const second = await lab.start();
    expect(await second.only()).toMatchObject({ id, state: "stored" });
    expect(await second.run("cat marker; echo two >> marker")).toBe("one\n");
    expect((await second.command("events", "--type", "sandbox.acquired")).out).toContain("tier=reattached");
    await second.kill();

    const third = await lab.start();
    expect(await third.run("cat marker")).toBe(keepsUnsaved ? "one\ntwo\n" : "one\n");
    expect(await third.tiers()).toEqual(["reattached"]);
    expect((await third.only()).id).toBe(id);
    await third.destroy(id);
    expect(await third.stop()).toBe(0);
  });

  test(
    "the newest snapshot comes before a fresh one; another spec, and what was stopped for too long, is replaced",
    { timeout: TIMEOUT_MS },
    async () => {
      const lab = await open();
      const first = await lab.start();
      await first.run("echo old > marker");
      const { id } = await first.only();
      await first.take(id);
      await first.run("echo newest > marker");
      expect(await first.stop()).toBe(0);

      // No process has it: the snapshot resumes it.
      const second = await lab.start();
      expect(await second.command("snapshot", id)).toMatchObject({ code: 0 });
      expect((await second.events("sandbox.resumed")).map(({ data }) => data)).toEqual([{ for: "snapshot" }]);
      await second.destroy(id);
      expect(await second.stop()).toBe(0);

      const third = await lab.start();
      expect(await third.run("cat marker")).toBe("newest\n");
      const { id: restored } = await third.only();
      expect(await third.run("cat marker || echo none", "--env", "MODE=other")).toBe("none\n");
      expect(await third.tiers()).toEqual(["restored", "fresh"]);
      const { id: other } = await third.only();
      expect(other).not.toBe(restored);
      expect(await third.stop()).toBe(0);

      const stoppedMs = Date.now();
      const fourth = await lab.start("--resume-ttl", "1s");
      await expect.poll(() => Date.now() - stoppedMs).toBeGreaterThan(1_500);
      await fourth.run("true", "--env", "MODE=other");
      expect(await fourth.tiers()).toEqual(["fresh"]);
      const { id: last } = await fourth.only();
      expect(last).not.toBe(other);
      await fourth.destroy(last);
      expect(await fourth.stop()).toBe(0);
    },
  );
}
