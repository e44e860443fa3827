import { afterAll, describe, expect, test, vi } from "vitest";
import {
  amendSnapshotSpellings,
  diffSpellings,
  labelSpellings,
  promoteSpellings,
  renameSpellings,
  restoreSpellings,
  rewindSpellings,
  snapshotSpellings,
} from "../../src/actions/snapshot-actions.ts";

// The page's modules assume that they were served from somewhere. Other files may have loaded them elsewhere.
vi.hoisted(() => {
  vi.resetModules();
  vi.stubGlobal("location", new URL("http://127.0.0.1:8080/"));
  vi.stubGlobal("document", { visibilityState: "hidden" });
});
afterAll(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

describe("the spellings of actions on saved states", () => {
  test("leave out the server's defaults", () => {
    const { cli, sdk, curl } = snapshotSpellings("a", {});
    expect(cli).toBe("sandboxer snapshot a");
    expect(sdk).toContain("await sandbox.snapshot();");
    expect(curl).toContain("-d '{}' http://127.0.0.1:8080/v1/sandboxes/a/snapshot");
  });

  test("quote typed text", () => {
    const { cli, sdk, curl } = snapshotSpellings("a", { labels: { "it's": '"; rm -rf /' } });
    expect(cli).toBe(String.raw`sandboxer snapshot a --label 'it'\''s="; rm -rf /'`);
    expect(sdk).toContain(String.raw`"\"; rm -rf /"`);
    expect(curl).toContain(String.raw`-d '{"labels":{"it'\''s":"\"; rm -rf /"}}'`);
    expect(rewindSpellings("a", "$(reboot)").cli).toBe("sandboxer rewind '$(reboot)' --sandbox a");
    expect(diffSpellings("a b", "sandbox:c&d").curl).toContain("/v1/snapshots/a%20b/diff?to=sandbox%3Ac%26d");
  });

  test("of a promotion call the original", () => {
    const { cli, sdk, curl } = promoteSpellings("fork", { into: "work", discardOthers: true });
    expect(cli).toBe("sandboxer promote fork --into work --discard-others");
    expect(sdk).toContain('await sandbox.promote({"into":"work","discardOthers":true});');
    expect(curl).toContain(
      `-d '{"winner":"fork","discard_others":true}' http://127.0.0.1:8080/v1/sandboxes/work/promote`,
    );
    expect(promoteSpellings("fork", { into: "work", discardOthers: false }).cli).toBe(
      "sandboxer promote fork --into work",
    );
  });

  test("of a restore name its settings", () => {
    const { cli, sdk } = restoreSpellings("s", { name: "web", backend: "docker" });
    expect(cli).toBe("sandboxer restore s --name web --backend docker");
    expect(sdk).toMatch(/Sandbox\.restore\("s", .*"web".*"docker"/);
  });

  test("set and remove names and labels", () => {
    expect(renameSpellings("a", null).cli).toBe("sandboxer update a --no-name");
    expect(labelSpellings("a", { old: "1", same: "1" }, { same: "1", fresh: "2" }).cli).toBe(
      "sandboxer update a --label fresh=2 --remove-label old",
    );
    const before = { id: "s", name: "one", labels: { old: "1" } };
    expect(amendSnapshotSpellings(before, { name: "two", labels: { old: "1", fresh: "2" } }).cli).toBe(
      "sandboxer snapshots name s two --label fresh=2",
    );
    expect(amendSnapshotSpellings(before, { name: null, labels: { old: "1" } }).cli).toBe(
      "sandboxer snapshots name s --none",
    );
    expect(amendSnapshotSpellings(before, { name: "one", labels: {} }).cli).toBe(
      `sandboxer api PATCH /v1/snapshots/s --body '{"labels":{}}'`,
    );
  });
});
