import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { pack } from "tar-stream";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../../test/kit/server/test-server.ts";
import { FilesClient, readTar, tarOf, type TarEntry } from "./support.ts";

const LONG = `${"long-name/".repeat(20)}${"x".repeat(150)}.txt`;
const WHEN = new Date("2020-02-03T04:05:06Z");

test("a tree is downloaded as it was uploaded: files, folders, links, modes, times and long names", async () => {
  const box = await FilesClient.create(await startTestServer());
  const content = randomBytes(700_000);
  const entries: TarEntry[] = [
    { name: "empty/", type: "directory", mode: 0o700, mtime: WHEN },
    { name: "link", type: "symlink", linkname: "sub/data.bin", mtime: WHEN, mode: 0o777 },
    { name: "locked/", type: "directory", mode: 0o555, mtime: WHEN },
    { name: "locked/inside", content: "x", mode: 0o400, mtime: WHEN },
    { name: "sub/", type: "directory", mode: 0o755, mtime: WHEN },
    { name: "sub/data.bin", content, mode: 0o640, mtime: WHEN },
    { name: "sub/run.sh", content: "echo hi\n", mode: 0o755, mtime: WHEN },
  ];
  const sent = await box.upload("/workspace/tree", await tarOf(entries));
  expect(sent).toEqual({ status: 200, body: { files: 4, bytes: 700_009 } });
  const response = await box.download("/workspace/tree");
  expect(response.headers.get("content-type")).toBe("application/x-tar");
  const back = await readTar(response.body!);
  const expected = entries.map((entry) => ({ type: "file", ...entry, content: Buffer.from(entry.content ?? "") }));
  expect(back.map(({ linkname, ...entry }) => (linkname === undefined ? entry : { ...entry, linkname }))).toEqual(
    expected,
  );
  const long = await box.upload("/workspace/long", await tarOf([{ name: LONG, content: "far" }]));
  expect(long.body.files).toBe(1);
  expect((await readTar((await box.download("/workspace/long")).body!)).at(-1)).toMatchObject({ name: LONG });
});

test("a single file is a tree of one, and hard links become separate files", async () => {
  const box = await FilesClient.create(await startTestServer());
  const tar = await tarOf([
    { name: "./", type: "directory" },
    { name: "./a/one", content: "1" },
    { name: "./b/two", type: "link", linkname: "a/one" },
  ]);
  expect((await box.upload("/workspace", tar)).body).toEqual({ files: 2, bytes: 2 });
  const [only, ...others] = await readTar((await box.download("/workspace/b/two")).body!);
  expect([only?.name, only?.content.toString(), others]).toEqual(["two", "1", []]);
});

test("existing files are replaced, never written through", async () => {
  const box = await FilesClient.create(await startTestServer());
  await box.write("/workspace/outside", "precious");
  await box.upload("/workspace/t", await tarOf([{ name: "f", type: "symlink", linkname: "/workspace/outside" }]));
  expect((await box.upload("/workspace/t", await tarOf([{ name: "f", content: "new" }]))).status).toBe(200);
  expect(await (await box.read("/workspace/outside")).text()).toBe("precious");
  expect(await box.stat("/workspace/t/f")).toMatchObject({ kind: "file", size_bytes: 3 });
});

describe("a hostile tar", () => {
  const hostile: [string, TarEntry[]][] = [
    ["is absolute", [{ name: "/etc/evil", content: "x" }]],
    ["leads outside the folder", [{ name: "../evil", content: "x" }]],
    ["leads outside the folder", [{ name: "a/../../evil", content: "x" }]],
    [
      "leads through out, which is not a folder",
      [
        { name: "out", type: "symlink", linkname: "/workspace" },
        { name: "out/evil", content: "x" },
      ],
    ],
    [
      "leads through out, which is not a folder",
      [
        { name: "out", type: "symlink", linkname: ".." },
        { name: "out/evil/", type: "directory" },
      ],
    ],
    ["leads outside the folder", [{ name: "hard", type: "link", linkname: "../secret" }]],
    [
      "is a hard link to a path outside the archive",
      [
        { name: "out", type: "symlink", linkname: "/workspace" },
        { name: "hard", type: "link", linkname: "out/secret" },
      ],
    ],
    ["is a hard link to a path outside the archive", [{ name: "hard", type: "link", linkname: "absent" }]],
    ["is a character-device", [{ name: "null", type: "character-device" }]],
    ["is a fifo", [{ name: "pipe", type: "fifo" }]],
    [
      "has the name of an existing folder",
      [
        { name: "d/", type: "directory" },
        { name: "d", content: "x" },
      ],
    ],
  ];
  test.each(hostile)("%s: refused", async (why, entries) => {
    const box = await FilesClient.create(await startTestServer());
    await box.write("/workspace/secret", "s");
    const { status, body } = await box.upload("/workspace/in", await tarOf(entries));
    expect([status, body.error.code]).toEqual([400, "bad_request"]);
    expect(body.error.message).toContain(why);
    expect(await box.names("/workspace")).toEqual(["in", "secret"]);
  });

  test("that is not a tar, or ends in the middle, is refused", async () => {
    const box = await FilesClient.create(await startTestServer());
    const whole = await tarOf([{ name: "a", content: randomBytes(5000) }]);
    for (const bad of [randomBytes(4096), whole.subarray(0, 3000), Buffer.from("short")]) {
      const { status, body } = await box.upload("/workspace/in", bad);
      expect([status, body.error.code]).toEqual([400, "bad_request"]);
    }
    expect((await box.upload("/workspace/in", whole)).status).toBe(200);
  });
});

test("a large tar that is refused at its beginning has an answer, not a broken connection", async () => {
  const box = await FilesClient.create(await startTestServer());
  const tar = await tarOf([{ name: "../evil" }, { name: "big", content: Buffer.alloc(60_000_000) }]);
  const { status, body } = await box.upload("/workspace/in", tar);
  expect([status, body.error.details]).toEqual([400, { entry: "../evil" }]);
});

test("very many entries stream, both ways", async () => {
  const box = await FilesClient.create(await startTestServer());
  // 5 MB each way, and far more entries than are under way at once.
  const many = 5_000;
  const archive = pack();
  void (async () => {
    for (let index = 0; index < many; index += 1) {
      const name = `d${index % 100}/f${index}`;
      await new Promise<void>((resolve) => archive.entry({ name, type: "file" }, `${index}`, () => resolve()));
    }
    archive.finalize();
  })();
  const body = Readable.toWeb(Readable.from(archive));
  expect((await box.upload("/workspace/many", body)).body.files).toBe(many);
  const back = await readTar((await box.download("/workspace/many")).body!);
  expect(back.filter(({ type }) => type === "file")).toHaveLength(many);
});

test("a file that changes while it is read is cut or padded, and the tar stays valid", async () => {
  const server = await startTestServer();
  const box = await FilesClient.create(server);
  await box.upload(
    "/workspace/t",
    await tarOf([
      { name: "grows", content: "12345" },
      { name: "shrinks", content: "12345" },
    ]),
  );
  const { handle } = await server.live(box.id);
  const list = handle.files.list.bind(handle.files);
  handle.files.list = async (path) => {
    const entries = await list(path);
    await handle.files.write("/workspace/t/grows", Buffer.from("1234567890"));
    await handle.files.write("/workspace/t/shrinks", Buffer.from("1"));
    return entries;
  };
  const back = await readTar((await box.download("/workspace/t")).body!);
  expect(back.map(({ content }) => content.toString())).toEqual(["12345", "1\0\0\0\0"]);
});

test("a client that disconnects in the middle of a download leaves nothing open", async () => {
  const server = await startTestServer();
  const box = await FilesClient.create(server);
  await box.write("/workspace/big", randomBytes(20_000_000));
  const sandbox = await server.live(box.id);
  const { files } = sandbox.handle;
  const read = files.read.bind(files);
  let open = 0;
  files.read = async function* (...given) {
    open += 1;
    try {
      yield* read(...given);
    } finally {
      open -= 1;
    }
  };
  const gone = new AbortController();
  const response = await fetch(`${box.url}/tree?path=/workspace`, { signal: gone.signal });
  await response.body?.getReader().read();
  expect([sandbox.isIdle(Number.MAX_SAFE_INTEGER), open]).toEqual([false, 1]);
  gone.abort();
  await eventually("it is idle", () => sandbox.isIdle(Number.MAX_SAFE_INTEGER));
  await eventually("the file is closed", () => open === 0);
});
