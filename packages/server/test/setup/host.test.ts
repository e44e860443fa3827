import { expect, test } from "vitest";
import { requireGvisorHost } from "../../src/setup/host.ts";

test("root on Linux is enough", () => {
  expect(() => requireGvisorHost({ operatingSystem: "linux", architecture: "x64", uid: 0 })).not.toThrow();
});

test.each([
  [{ operatingSystem: "darwin", architecture: "arm64", uid: 0 }, /needs Linux; this is darwin/],
  [{ operatingSystem: "linux", architecture: "riscv64", uid: 0 }, /needs x64 or arm64; this is riscv64/],
  [{ operatingSystem: "linux", architecture: "x64", uid: 1000 }, /needs root; this is uid 1000.*rootless/],
])("%j gets the exact reason, and what would work", (host, why) => {
  expect(() => requireGvisorHost(host)).toThrow(
    expect.objectContaining({
      code: "backend_unavailable",
      message: expect.stringMatching(why),
      hint: expect.stringContaining("--backend fake"),
    }),
  );
});
