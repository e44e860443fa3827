import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import type { DaytonaBackend } from "../../../src/backends/daytona/daytona-backend.ts";
import { errorCode, run, start } from "../contract/programs.ts";
import { openBackend, openServer } from "./lab.ts";
import { requestFor } from "./requests.ts";
import type { DaytonaServer } from "./server/daytona-server.ts";

/** The sandboxes behind this server have no tools for streaming, like some images. */
describe("an image at Daytona without tools", () => {
  let server: DaytonaServer;
  let backend: DaytonaBackend;
  let handle: SandboxHandle;
  beforeEach(async () => {
    server = await openServer();
    backend = openBackend(server);
    handle = await backend.acquire(requestFor());
  });
  afterEach(async () => {
    await backend.close();
    await server.close();
  });

  test("commands run, and their output comes at their end", async () => {
    expect((await run(handle, ["printenv", "WORD"], { env: { WORD: "a b" } })).stdout).toBe("a b\n");
    expect((await run(handle, ["pwd"], { workingFolder: "/tmp" })).stdout).toBe("/tmp\n");
    expect((await run(handle, ["sleep", "0"])).exit).toMatchObject({ code: 0 });
  });

  test("stdin, signals and pauses are refused, with the missing tools", async () => {
    const process = await start(handle, ["sleep", "30"]);
    expect(await errorCode(process.writeStdin(Buffer.from("x")))).toBe("wrong_state");
    expect(await errorCode(process.signal(9, "process"))).toBe("not_supported");
    expect(await errorCode(handle.freeze())).toBe("not_supported");
    expect(await errorCode(handle.connect(80))).toBe("not_supported");
  });

  test("files go only through the toolbox, which does not support links", async () => {
    const { files } = handle;
    await files.makeFolder("/workspace/a/b", { parents: true });
    expect(await errorCode(files.makeFolder("/workspace/a"))).toBe("bad_request");
    expect(await errorCode(files.makeFolder("/workspace/missing/b"))).toBe("file_not_found");
    await files.write("/workspace/a/b/file", Buffer.from("0123456789"), { mode: 0o600 });
    expect(await files.stat("/workspace/a/b/file")).toMatchObject({ kind: "file", mode: 0o600, sizeBytes: 10 });
    const part = await Array.fromAsync(files.read("/workspace/a/b/file", { offset: 2, length: 3 }));
    expect(Buffer.concat(part).toString("utf8")).toBe("234");
    await files.set("/workspace/a/b/file", { mode: 0o644 });
    await files.rename("/workspace/a/b/file", "/workspace/a/moved");
    expect((await files.list("/workspace/a")).map(({ name, kind }) => [name, kind])).toEqual([
      ["b", "folder"],
      ["moved", "file"],
    ]);
    expect(await errorCode(files.makeSymlink("moved", "/workspace/a/link"))).toBe("not_supported");
    await files.remove("/workspace/a", { recursive: true });
    expect(await errorCode(files.stat("/workspace/a"))).toBe("file_not_found");
    expect(await errorCode(files.write("/workspace/a/x", Buffer.from("x")))).toBe("file_not_found");
    expect(await errorCode(files.stat("relative"))).toBe("bad_request");
  });
});
