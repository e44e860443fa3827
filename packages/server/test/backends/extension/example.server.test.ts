import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AcquireRequest } from "../../../src/backends/backend.ts";
import { ExtensionBackend } from "../../../src/backends/extension/extension-backend.ts";
import { loadExtensions } from "../../../src/backends/extension/load-extensions.ts";
import { bash, errorCode, Follower, readText, run, start } from "../contract/programs.ts";

const REPOSITORY = new URL("../../../../../", import.meta.url).pathname;
const EXAMPLE = join(REPOSITORY, "examples/extension");

let scratch = "";
let manifest = "";
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "sbx-example-"));
  manifest = join(scratch, "manifest.yaml");
  // The manifest of the example, with a folder of this test's.
  const text = await readFile(join(EXAMPLE, "manifest.yaml"), "utf8");
  await writeFile(
    manifest,
    text
      .replace("./folder-extension.ts", join(EXAMPLE, "folder-extension.ts"))
      .replace("/tmp/sandboxer-folders", join(scratch, "root")),
  );
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

test("the documentation shows the unchanged example", async () => {
  const page = await readFile(join(REPOSITORY, "docs/guides/extension.md"), "utf8");
  for (const [name, language] of [
    ["folder-extension.ts", "ts"],
    ["manifest.yaml", "yaml"],
  ] as const) {
    const code = await readFile(join(EXAMPLE, name), "utf8");
    expect(page).toContain(`\`\`\`${language}\n${code}\`\`\``);
  }
});

test("the example is loaded by its manifest, runs, is found again, and restores its snapshots", async () => {
  const open = async (): Promise<ExtensionBackend> => {
    const extension = (await loadExtensions(manifest)).get("ext.folder");
    if (extension === undefined) throw new Error("The manifest has no ext.folder.");
    return new ExtensionBackend(extension);
  };
  const backend = await open();
  expect(backend.capabilities).toEqual({
    snapshot: "filesystem",
    filesystemSnapshot: true,
    pty: false,
    files: true,
    connect: false,
    network: false,
    limits: false,
    outlivesServer: true,
    selfHosted: true,
  });
  expect(await backend.probe()).toMatchObject({ ok: true });

  const repo = join(scratch, "repo");
  await mkdir(repo, { recursive: true });
  await writeFile(join(repo, "note"), "from the repository\n");
  const request = requestFor({ repo });
  const handle = await backend.acquire(request);
  const folder = join(scratch, "root", request.sandboxId);
  expect((await run(handle, bash("cat note; echo $WHO; exit 4"), { env: { WHO: "me" } })).exit.code).toBe(4);
  expect(await readText(handle, join(folder, "note"))).toBe("from the repository\n");
  expect(await errorCode(start(handle, ["/no/such/program"]))).toBe("file_not_found");
  const sleeping = await start(handle, bash("echo here; sleep 300"));
  await new Follower(sleeping).until("here");
  await sleeping.signal(15, "group");
  expect(await sleeping.exited).toMatchObject({ signal: 15 });

  const into = join(scratch, "snapshot");
  await mkdir(into);
  const snapshot = await handle.snapshot(into, { mode: "filesystem", leaveRunning: true });
  expect(snapshot.members.map(({ name }) => name)).toEqual(["folder.tar.gz"]);
  await handle.files.write(join(folder, "note"), Buffer.from("changed\n"));
  const copy = requestFor();
  const restored = await backend.acquireFromSnapshot(copy, snapshot);
  expect(await readText(restored, join(scratch, "root", copy.sandboxId, "note"))).toBe("from the repository\n");

  await backend.close();
  expect(await errorCode(handle.ping())).toBe("sandbox_failed");
  const again = await (await open()).tryResume(request);
  if (again === undefined) throw new Error("It was not found.");
  expect(await readText(again, join(folder, "note"))).toBe("changed\n");
  await again.destroy();
  await restored.destroy();
  expect(await readdir(join(scratch, "root"))).toEqual([]);
});

function requestFor(inputs: Record<string, string> = {}): AcquireRequest {
  return { sandboxId: randomUUID(), spec: { env: {}, resources: {}, network: "none", inputs } };
}
