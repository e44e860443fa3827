import { type ErrorCode, SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import type { FileEntry, SandboxFiles } from "../../../src/backends/backend.ts";
import { listFiles } from "../../../src/manager/snapshots/walk-files.ts";
import { systemClock } from "../../../src/support/clock.ts";

function entry(name: string, kind: FileEntry["kind"]): FileEntry {
  return { name, kind, mode: 0o755, uid: 1000, gid: 1000, sizeBytes: 1, modifiedMs: 1, linkTarget: undefined };
}

/** `/workspace` with a file and a folder that cannot be listed. */
function filesWith(code: ErrorCode): Pick<SandboxFiles, "list" | "stat"> {
  return {
    stat: async () => Promise.reject(new SandboxerError("file_not_found", "no")),
    list: async (path) => {
      if (path === "/workspace") return [entry("file", "file"), entry("folder", "folder")];
      throw new SandboxerError(path.endsWith("/folder") ? code : "file_not_found", path);
    },
  };
}

const walk = async (code: ErrorCode) => await listFiles(filesWith(code) as SandboxFiles, systemClock);

test.each(["file_not_found", "permission_denied", "bad_request"] as const)(
  "a folder that is %s has no files",
  async (code) => {
    const { files, truncated } = await walk(code);
    expect([...files.keys()]).toEqual(["/workspace/file", "/workspace/folder"]);
    expect(truncated).toBe(false);
  },
);

test("a folder with too many files to list does not count as empty", async () => {
  expect((await walk("limit_reached")).truncated).toBe(true);
});

test.each(["sandbox_failed", "timeout", "backend_unavailable"] as const)("%s is not an answer", async (code) => {
  await expect(walk(code)).rejects.toMatchObject({ code });
});
