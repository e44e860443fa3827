import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import type { FileEntry, FolderWatcher, SandboxFiles } from "../../../src/backends/backend.ts";
import { watchTree } from "../../../src/manager/files/watch-tree.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";

/** Folders of a tree, and who watches them. */
class Tree {
  readonly watchers = new Map<string, FolderWatcher>();
  readonly folders: Map<string, string[]>;

  constructor(folders: Record<string, string[]>) {
    this.folders = new Map(Object.entries(folders));
  }

  readonly files = {
    list: async (path: string): Promise<FileEntry[]> =>
      (this.folders.get(path) ?? []).map(
        (name) => ({ name, kind: this.folders.has(`${path}/${name}`) ? "folder" : "file" }) as FileEntry,
      ),
    watch: async (path: string, watcher: FolderWatcher) => {
      if (!this.folders.has(path)) throw new SandboxerError("file_not_found", "missing");
      this.watchers.set(path, watcher);
      return { close: () => void this.watchers.delete(path) };
    },
  } as unknown as SandboxFiles;
}

function observed() {
  const told: string[] = [];
  const ends: string[] = [];
  return {
    told,
    ends,
    watcher: {
      onChange: ({ kind, name }: { kind: string; name: string }) => void told.push(`${kind} ${name}`),
      onEnd: (error: SandboxerError) => void ends.push(error.code),
    },
  };
}

test("folders below are watched from the start only on request", async () => {
  const tree = new Tree({ "/w": ["a"], "/w/a": ["b"], "/w/a/b": [] });
  const flat = await watchTree(tree.files, "/w", false, observed().watcher);
  expect([...tree.watchers.keys()]).toEqual(["/w"]);
  flat.close();
  const deep = await watchTree(tree.files, "/w", true, observed().watcher);
  expect([...tree.watchers.keys()]).toEqual(["/w", "/w/a", "/w/a/b"]);
  deep.close();
  expect(tree.watchers.size).toBe(0);
});

test("files that were made before their new folder was watched are reported, each once", async () => {
  const tree = new Tree({ "/w": [] });
  const { told, watcher } = observed();
  await watchTree(tree.files, "/w", true, watcher);
  tree.folders.set("/w/new", ["early", "deep"]).set("/w/new/deep", ["file"]);
  tree.watchers.get("/w")?.onChange({ kind: "created", name: "new", isFolder: true });
  await eventually("the file below", () => told.includes("created new/deep/file"));
  expect(told).toEqual(["created new", "created new/early", "created new/deep", "created new/deep/file"]);
  tree.watchers.get("/w/new/deep")?.onChange({ kind: "written", name: "file", isFolder: false });
  expect(told.at(-1)).toBe("written new/deep/file");
});

test("a folder that is moved away is no longer watched", async () => {
  const tree = new Tree({ "/w": ["a", "ab"], "/w/a": ["b"], "/w/a/b": [], "/w/ab": [] });
  const { watcher } = observed();
  await watchTree(tree.files, "/w", true, watcher);
  tree.watchers.get("/w")?.onChange({ kind: "renamed", name: "a", isFolder: true });
  expect([...tree.watchers.keys()]).toEqual(["/w", "/w/ab"]);
});

test("the end of a folder below ends nothing, and that of the watched one has the reason", async () => {
  const tree = new Tree({ "/w": ["a"], "/w/a": [] });
  const { ends, watcher } = observed();
  await watchTree(tree.files, "/w", true, watcher);
  tree.watchers.get("/w/a")?.onEnd("folder");
  expect(ends).toEqual([]);
  tree.watchers.get("/w")?.onEnd("folder");
  tree.watchers.get("/w")?.onEnd("lost");
  expect(ends).toEqual(["file_not_found"]);
});

test("too many folders are refused at the start, and end a watch that grows", async () => {
  const names = Array.from({ length: 600 }, (_, index) => `f${index}`);
  const many = new Tree({ "/w": names, ...Object.fromEntries(names.map((name) => [`/w/${name}`, []])) });
  await expect(watchTree(many.files, "/w", true, observed().watcher)).rejects.toMatchObject({ code: "limit_reached" });
  expect(many.watchers.size).toBe(0);
  const tree = new Tree({ "/w": [] });
  const { ends, watcher } = observed();
  await watchTree(tree.files, "/w", true, watcher);
  for (const name of names) {
    tree.folders.set(`/w/${name}`, []);
    tree.watchers.get("/w")?.onChange({ kind: "created", name, isFolder: true });
  }
  await eventually("the end", () => ends.length > 0);
  expect(ends).toEqual(["limit_reached"]);
  expect(tree.watchers.size).toBe(0);
});

test("a backend without watches reports it", async () => {
  const files = { list: async () => [] } as unknown as SandboxFiles;
  await expect(watchTree(files, "/w", false, observed().watcher)).rejects.toMatchObject({ code: "not_supported" });
});
