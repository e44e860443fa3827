import { expect, test } from "vitest";
import { choosePlatform, type SelfTest, type Verdict } from "../../src/setup/platform.ts";
import { setupFixture } from "./setup-fixture.ts";

const ENGINE = { path: "/x/runsc", version: "20240729.0", sha256: "e".repeat(64), source: "test" };
const AGENT = { path: "/x/agent", sha256: "a".repeat(64) };

const works = (platform: string) => ({ platform, control: "messages" });

/** A machine where each platform returns its verdicts in turn, the last one forever. */
function machine(verdicts: Record<string, boolean[]>): { selfTest: SelfTest; tried: string[] } {
  const tried: string[] = [];
  const selfTest: SelfTest = async ({ platform, version }): Promise<Verdict> => {
    const list = verdicts[platform] ?? [false];
    const ok = list.length > 1 ? list.shift() : list[0];
    tried.push(platform);
    const control = version === ENGINE.version ? "messages" : "commands";
    return ok === true ? { ok, elapsedMs: 1, control } : { ok: false, reason: "it hangs" };
  };
  return { selfTest, tried };
}

test("systrap where it works, and no second test for the same engine, agent and kernel", async () => {
  using fixture = setupFixture();
  const { selfTest, tried } = machine({ systrap: [true], ptrace: [true] });
  expect(await choosePlatform(fixture.context, ENGINE, AGENT, selfTest)).toEqual(works("systrap"));
  expect(await choosePlatform(fixture.context, ENGINE, AGENT, selfTest)).toEqual(works("systrap"));
  expect(tried).toEqual(["systrap"]);
  await choosePlatform(fixture.context, { ...ENGINE, sha256: "f".repeat(64) }, AGENT, selfTest);
  await choosePlatform(fixture.context, ENGINE, { ...AGENT, sha256: "b".repeat(64) }, selfTest);
  expect(tried).toEqual(["systrap", "systrap", "systrap"]);
});

test("ptrace where systrap does not work; later starts do not try systrap again", async () => {
  using fixture = setupFixture();
  const { selfTest, tried } = machine({ systrap: [false], ptrace: [true] });
  expect(await choosePlatform(fixture.context, ENGINE, AGENT, selfTest)).toEqual(works("ptrace"));
  expect(await choosePlatform(fixture.context, ENGINE, AGENT, selfTest)).toEqual(works("ptrace"));
  expect(tried).toEqual(["systrap", "systrap", "ptrace"]);
});

test("one random failure does not decide", async () => {
  using fixture = setupFixture();
  const { selfTest } = machine({ systrap: [false, true], ptrace: [true] });
  expect(await choosePlatform(fixture.context, ENGINE, AGENT, selfTest)).toEqual(works("systrap"));
});

test("if nothing works, the reasons are reported, and the next start looks again", async () => {
  using fixture = setupFixture();
  const broken = machine({});
  await expect(choosePlatform(fixture.context, ENGINE, AGENT, broken.selfTest)).rejects.toMatchObject({
    code: "backend_unavailable",
    message: expect.stringMatching(/systrap: it hangs ptrace: it hangs/),
    hint: expect.stringContaining("--backend fake"),
  });
  const repaired = machine({ systrap: [true] });
  expect(await choosePlatform(fixture.context, ENGINE, AGENT, repaired.selfTest)).toEqual(works("systrap"));
});

test("kvm only when it is requested", async () => {
  const { selfTest, tried } = machine({ kvm: [true] });
  using automatic = setupFixture();
  await expect(choosePlatform(automatic.context, ENGINE, AGENT, selfTest)).rejects.toThrow();
  expect(tried).not.toContain("kvm");
  using asked = setupFixture({ platform: "kvm" });
  expect(await choosePlatform(asked.context, ENGINE, AGENT, selfTest)).toEqual(works("kvm"));
});
