import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { lstat, mkdir, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import type { Progress } from "../../src/support/call-options.ts";
import { answerRange, FakeRegistry } from "./support/fake-registry.ts";
import { digestOf, madeImage, madeLayer, OCI_INDEX, THIS_ARCHITECTURE, type Packing } from "./support/made-image.ts";
import { openLibrary } from "./support/open-library.ts";

const HELLO = { name: "hello", content: "hello\n" };

describe("a pull", () => {
  it.each<Packing>(["gzip", "zstd", "none"])("unpacks layers packed with %s", async (packing) => {
    const registry = await FakeRegistry.start();
    const name = registry.push(madeImage([await madeLayer([HELLO], packing)]));
    const image = await (await openLibrary(registry)).use(name);
    expect(await readFile(join(image.path, "hello"), "utf8")).toBe("hello\n");
  });

  it("stacks layers with whiteouts, opaque folders, replaced kinds, links, modes, owners and times", async () => {
    const registry = await FakeRegistry.start();
    const lower = await madeLayer([
      { name: "etc", type: "directory", mode: 0o750, mtime: new Date(1_500_000_000_000) },
      { name: "etc/kept", content: "lower" },
      { name: "etc/removed", content: "lower" },
      { name: "cache", type: "directory" },
      { name: "cache/old", content: "lower" },
      { name: "was-folder", type: "directory" },
      { name: "was-folder/file", content: "lower" },
      { name: "was-link", type: "symlink", linkname: "etc" },
      { name: "lib", type: "directory" },
      { name: "lib/one", content: "one", mode: 0o4755 },
      { name: "lib/two", type: "link", linkname: "lib/one" },
    ]);
    const upper = await madeLayer([
      { name: "etc/.wh.removed" },
      { name: "etc/added", content: "upper" },
      { name: "cache/.wh..wh..opq" },
      { name: "cache/new", content: "upper" },
      { name: "was-folder", content: "now a file" },
      { name: "was-link", type: "directory" },
      { name: "was-link/inside", content: "upper" },
      { name: ".wh.never-there" },
      { name: "nowhere/deep/.wh.file" },
    ]);
    const { path } = await (await openLibrary(registry)).use(registry.push(madeImage([lower, upper])));
    expect((await readdir(join(path, "etc"))).toSorted()).toEqual(["added", "kept"]);
    // The upper layer does not describe the folder, so it is the lower one's.
    const etc = await stat(join(path, "etc"));
    expect([etc.mode & 0o7777, etc.mtimeMs]).toEqual([0o750, 1_500_000_000_000]);
    expect(await readdir(join(path, "cache"))).toEqual(["new"]);
    expect(await readFile(join(path, "was-folder"), "utf8")).toBe("now a file");
    expect((await lstat(join(path, "was-link"))).isDirectory()).toBe(true);
    expect((await stat(join(path, "lib/one"))).ino).toBe((await stat(join(path, "lib/two"))).ino);
    expect((await stat(join(path, "lib/one"))).mode & 0o7777).toBe(0o4755);
    expect((await stat(join(path, "lib/one"))).mtimeMs).toBe(1_600_000_000_000);
    expect(await readdir(path)).toEqual(expect.arrayContaining(["proc", "dev", "tmp"]));
  });

  it("keeps the folder of images closed to other users", async () => {
    const registry = await FakeRegistry.start();
    const folder = join(await temporaryFolder(), "images");
    const name = registry.push(madeImage([await madeLayer([{ name: "sudo", mode: 0o4755 }])]));
    await (await openLibrary(registry, { folder })).use(name);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  it("selects this machine's image from an index, and remembers its digest", async () => {
    const registry = await FakeRegistry.start();
    const image = madeImage([await madeLayer([HELLO])]);
    registry.push(image, "team/tool", "amd");
    const descriptor = { digest: image.digest, size: image.manifest.length };
    const index = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        manifests: [
          { digest: digestOf(Buffer.from("other")), size: 5, platform: { os: "linux", architecture: "s390x" } },
          { ...descriptor, platform: { os: "linux", architecture: THIS_ARCHITECTURE } },
          { digest: digestOf(Buffer.from("proof")), size: 5, platform: { os: "unknown", architecture: "unknown" } },
        ],
      }),
    );
    registry.putManifest(index, OCI_INDEX, "team/tool", "1");
    const library = await openLibrary(registry);
    const held = await library.use(`${registry.host}/team/tool:1`);
    expect(held.digest).toBe(image.digest);
    expect(held.name).toBe(`${registry.host}/team/tool@${image.digest}`);
    const asked = registry.requests.length;
    // Both digests lead to it.
    await library.use(`${registry.host}/team/tool@${digestOf(index)}`);
    expect(registry.requests.length).toBeGreaterThan(asked);
    const again = registry.requests.length;
    expect((await library.use(`${registry.host}/team/tool@${digestOf(index)}`)).digest).toBe(image.digest);
    expect((await library.use(held.name)).digest).toBe(image.digest);
    expect(registry.requests.length).toBe(again);
  });

  it("lists the platforms of an index", async () => {
    const registry = await FakeRegistry.start();
    const manifests = [
      { digest: digestOf(Buffer.from("x")), size: 1, platform: { os: "linux", architecture: "s390x" } },
    ];
    registry.putManifest(Buffer.from(JSON.stringify({ manifests })), OCI_INDEX, "team/tool", "1");
    await expect((await openLibrary(registry)).use("team/tool:1")).rejects.toThrow(
      `it is not made for linux/${THIS_ARCHITECTURE}; it has linux/s390x`,
    );
  });

  it("reads the image's variables, user, folder, entrypoint and command", async () => {
    const registry = await FakeRegistry.start();
    const config = {
      Env: ["PATH=/opt/bin:/bin", "EMPTY=", "no equals sign"],
      User: "app:staff",
      WorkingDir: "/srv/app",
      Entrypoint: ["/run.sh"],
      Cmd: ["--all"],
    };
    const held = await (await openLibrary(registry)).use(registry.push(madeImage([await madeLayer([HELLO])], config)));
    expect(held.defaults).toEqual({
      env: { PATH: "/opt/bin:/bin", EMPTY: "" },
      user: "app:staff",
      workingFolder: "/srv/app",
      entrypoint: ["/run.sh"],
      command: ["--all"],
    });
  });

  it("downloads once for many callers at the same time, and reports the progress to all of them", async () => {
    const registry = await FakeRegistry.start();
    const name = registry.push(madeImage([await madeLayer([HELLO]), await madeLayer([{ name: "other" }])]));
    const library = await openLibrary(registry);
    const told: Progress[][] = [[], [], []];
    const held = await Promise.all(told.map((list) => library.use(name, { onProgress: (each) => list.push(each) })));
    expect(new Set(held.map(({ path }) => path)).size).toBe(1);
    expect(registry.blobRequests()).toHaveLength(3);
    for (const list of told) {
      expect(list).toContainEqual(expect.objectContaining({ phase: "pulling image", totalBytes: expect.any(Number) }));
      expect(list.at(-1)?.phase).toBe("unpacking image");
    }
  });

  it("continues for the others when one caller aborts, and stops when all have", async () => {
    const registry = await FakeRegistry.start();
    const name = registry.push(madeImage([await madeLayer([HELLO])]));
    const library = await openLibrary(registry);
    const arrived = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    registry.answerBlob = (request, response, bytes) => {
      arrived.resolve();
      void go.promise.then(() => answerRange(request, response, bytes));
    };
    const impatient = new AbortController();
    const first = library.use(name, { signal: impatient.signal });
    const second = library.use(name);
    await arrived.promise;
    impatient.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");
    go.resolve();
    await expect(second).resolves.toMatchObject({ digest: expect.any(String) });
    const alone = new AbortController();
    const hanging = Promise.withResolvers<void>();
    registry.answerBlob = () => hanging.resolve();
    const third = library.use(registry.push(madeImage([await madeLayer([{ name: "new" }])]), "team/new"), {
      signal: alone.signal,
    });
    await hanging.promise;
    alone.abort(new Error("enough"));
    await expect(third).rejects.toThrow("enough");
  });

  it("stores a layer that several images have once", async () => {
    const registry = await FakeRegistry.start();
    const base = await madeLayer([HELLO]);
    const library = await openLibrary(registry);
    const [one, two] = [
      await library.use(registry.push(madeImage([base, await madeLayer([{ name: "one" }])]), "team/one")),
      await library.use(registry.push(madeImage([base, await madeLayer([{ name: "two" }])]), "team/two")),
    ];
    expect(registry.blobRequests().filter((line) => line.includes(digestOf(base.bytes)))).toHaveLength(1);
    expect((await stat(join(one.path, "hello"))).ino).toBe((await stat(join(two.path, "hello"))).ino);
  });

  it("uses a stored image without a request, and asks again when a pull is requested", async () => {
    const registry = await FakeRegistry.start();
    const library = await openLibrary(registry);
    const old = await library.use(registry.push(madeImage([await madeLayer([HELLO])])));
    const next = madeImage([await madeLayer([{ name: "next" }])]);
    const name = registry.push(next);
    const asked = registry.requests.length;
    expect((await library.use(name)).digest).toBe(old.digest);
    expect(registry.requests.length).toBe(asked);
    expect((await library.pull(name)).digest).toBe(next.digest);
    expect((await library.use(name)).digest).toBe(next.digest);
    // The old one is still reached by its pinned name.
    expect((await library.use(old.name)).digest).toBe(old.digest);
  });

  it("can be prepared in advance, and is then found without a request", async () => {
    const registry = await FakeRegistry.start();
    const library = await openLibrary(registry);
    const name = registry.push(madeImage([await madeLayer([HELLO])]));
    await library.prepare(name);
    const asked = registry.requests.length;
    await library.prepare(name);
    await library.use(name);
    expect(registry.requests.length).toBe(asked);
  });

  it("continues after a server that was killed in the middle of the same pull", async () => {
    const registry = await FakeRegistry.start();
    const folder = await temporaryFolder();
    const image = madeImage([await madeLayer([HELLO])]);
    const name = registry.push(image);
    const entry = { names: [], repository: "x", diff_ids: [image.layers[0]!.diffId], bytes: 0, defaults: { env: {} } };
    const times = { pulled_at: "2020", last_used_at: "2020", held_by: ["a killed one"] };
    const images = { [image.digest]: { ...entry, ...times, ready: false } };
    await writeFile(join(folder, "images.json"), JSON.stringify({ version: 1, images }));
    const library = await openLibrary(registry, { folder });
    expect(await library.list()).toEqual([]);
    (await library.use(name)).release();
    expect((await library.prune()).removed).toEqual([image.digest]);
  });

  it("pulls again when somebody removed the files of an image", async () => {
    const registry = await FakeRegistry.start();
    const library = await openLibrary(registry);
    const name = registry.push(madeImage([await madeLayer([HELLO])]));
    const held = await library.use(name);
    await rm(held.path, { recursive: true });
    expect(await readFile(join((await library.use(name)).path, "hello"), "utf8")).toBe("hello\n");
  });
});

describe("credentials", () => {
  const challenge = (registry: FakeRegistry, expected: string): void => {
    registry.intercept = (request, response) => {
      if (request.url?.startsWith("/token") === true) {
        const ok = request.headers.authorization === `Basic ${Buffer.from(expected).toString("base64")}`;
        response.writeHead(ok ? 200 : 401).end(JSON.stringify({ token: "secret-token" }));
        return true;
      }
      if (request.headers.authorization === "Bearer secret-token") return false;
      const header = `Bearer realm="http://${registry.host}/token",service="here",scope="repository:team/tool:pull"`;
      response.writeHead(401, { "www-authenticate": header }).end();
      return true;
    };
  };

  it("come from Docker's config file, and a token is used for all requests", async () => {
    const registry = await FakeRegistry.start();
    const name = registry.push(madeImage([await madeLayer([HELLO])]));
    challenge(registry, "ada:love:lace");
    const dockerConfig = await temporaryFolder();
    const auths = { [registry.host]: { auth: Buffer.from("ada:love:lace").toString("base64") } };
    await writeFile(join(dockerConfig, "config.json"), JSON.stringify({ auths }));
    const credentials = {
      dockerConfig,
      secretNames: new Map(),
      secrets: { resolve: () => Promise.reject(new Error()) },
      searchPath: "",
    };
    await (await openLibrary(registry, { registries: { credentials } })).use(name);
    expect(registry.requests.filter((line) => line.includes("/token"))).toEqual([
      "GET /token?service=here&scope=repository%3Ateam%2Ftool%3Apull",
    ]);
  });

  it("come from a credential helper", async () => {
    const registry = await FakeRegistry.start();
    const name = registry.push(madeImage([await madeLayer([HELLO])]));
    challenge(registry, "ada:from helper");
    const folder = await temporaryFolder();
    const helper = `#!/bin/sh\nread host\n[ "$host" = "${registry.host}" ] || exit 1\necho '{"Username":"ada","Secret":"from helper"}'\n`;
    await writeFile(join(folder, "docker-credential-test"), helper, { mode: 0o755 });
    await writeFile(join(folder, "config.json"), JSON.stringify({ credHelpers: { [registry.host]: "test" } }));
    const credentials = {
      dockerConfig: folder,
      secretNames: new Map(),
      secrets: { resolve: () => Promise.reject(new Error()) },
      searchPath: `${folder}:/usr/bin:/bin`,
    };
    const library = await openLibrary(registry, { registries: { credentials } });
    await expect(library.use(name)).resolves.toMatchObject({ digest: expect.any(String) });
  });

  it("come from a named secret, and basic authentication works too", async () => {
    const registry = await FakeRegistry.start();
    const name = registry.push(madeImage([await madeLayer([HELLO])]));
    registry.intercept = (request, response) => {
      if (request.headers.authorization === `Basic ${Buffer.from("robot:hunter2").toString("base64")}`) return false;
      response.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end();
      return true;
    };
    const secrets = { resolve: async () => ({ reveal: () => "robot:hunter2" }) as never };
    const credentials = { secretNames: new Map([[registry.host, "registry"]]), secrets, searchPath: "" };
    const library = await openLibrary(registry, { registries: { credentials } });
    await expect(library.use(name)).resolves.toMatchObject({ digest: expect.any(String) });
  });

  /** A registry whose tokens are given for the identity token of `docker login`, and a library that has one. */
  const withIdentityToken = async () => {
    const registry = await FakeRegistry.start();
    const name = registry.push(madeImage([await madeLayer([HELLO])]));
    const dockerConfig = await temporaryFolder();
    const auths = { [registry.host]: { auth: Buffer.from("ada:").toString("base64"), identitytoken: "long-lived" } };
    await writeFile(join(dockerConfig, "config.json"), JSON.stringify({ auths }));
    const secrets = { resolve: () => Promise.reject(new Error()) };
    const credentials = { dockerConfig, secretNames: new Map(), secrets, searchPath: "" };
    return { registry, name, library: await openLibrary(registry, { registries: { credentials } }) };
  };

  it("may be an identity token, which is exchanged for a short one", async () => {
    const { registry, name, library } = await withIdentityToken();
    challenge(registry, "nobody:");
    const { intercept } = registry;
    const exchanged: string[] = [];
    registry.intercept = (request, response) => {
      if (request.url !== "/token") return intercept?.(request, response) === true;
      void readText(request).then((form) => {
        exchanged.push(`${request.method} ${String(request.headers.authorization)} ${form}`);
        response.writeHead(200).end(JSON.stringify({ access_token: "secret-token" }));
      });
      return true;
    };
    await library.use(name);
    const form =
      "grant_type=refresh_token&refresh_token=long-lived&client_id=sandboxer&scope=repository%3Ateam%2Ftool%3Apull&service=here";
    expect(exchanged).toEqual([`POST undefined ${form}`]);
  });

  it("are not sent on to another host to which the token's address redirects", async () => {
    const other = await FakeRegistry.start();
    const { registry, name, library } = await withIdentityToken();
    challenge(registry, "nobody:");
    const { intercept } = registry;
    registry.intercept = (request, response) => {
      if (request.url !== "/token") return intercept?.(request, response) === true;
      response.writeHead(307, { location: `http://${other.host}/token` }).end();
      return true;
    };
    await expect(library.use(name)).rejects.toMatchObject({
      code: "registry_unavailable",
      message: `${registry.host} redirects to an address that is not safe.`,
    });
    expect(other.requests).toEqual([]);
  });

  it("are requested when a registry refuses", async () => {
    const registry = await FakeRegistry.start();
    challenge(registry, "nobody:knows");
    await expect((await openLibrary(registry)).use("team/tool:1")).rejects.toMatchObject({
      code: "image_not_found",
      hint: expect.stringContaining("docker login"),
    });
  });
});

describe("places to pull from", () => {
  it("mirrors come first, and the registry itself if they do not have it", async () => {
    const [registry, mirror] = [await FakeRegistry.start(), await FakeRegistry.start()];
    const image = madeImage([await madeLayer([HELLO])]);
    registry.push(image);
    const mirrors = new Map([[registry.host, [`http://${mirror.host}`]]]);
    const library = await openLibrary(registry, { registries: { mirrors } });
    await library.use("team/tool:1");
    expect(mirror.requests[0]).toBe("GET /v2/team/tool/manifests/1");
    mirror.push(image, "team/mirrored");
    await library.use("team/mirrored:1");
    expect(registry.requests.some((line) => line.includes("mirrored"))).toBe(false);
  });

  it("are reached through the proxies of the environment, except for the hosts that need none", async () => {
    const registry = await FakeRegistry.start();
    const image = madeImage([await madeLayer([HELLO])]);
    registry.push(image);
    const asked: string[] = [];
    const proxy = createServer((request, response) => {
      const { host, pathname } = new URL(request.url ?? "");
      asked.push(`${request.method} ${host}`);
      request.pipe(
        httpRequest(`http://${registry.host}${pathname}`, { headers: request.headers }, (answer) => {
          answer.pipe(response.writeHead(answer.statusCode ?? 0, answer.headers));
        }),
      );
    }).on("connect", ({ url }, socket) => {
      asked.push(`CONNECT ${url}`);
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void proxy.close());
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const insecure = ["registry.test", registry.host];
    const registries = { insecure, proxies: { http: url, https: url, none: "127.0.0.1" } };
    const library = await openLibrary(registry, { registries });
    expect((await library.use("registry.test/team/tool:1")).digest).toBe(image.digest);
    expect(new Set(asked.splice(0))).toEqual(new Set(["GET registry.test"]));
    await expect(library.use("secure.test/team/tool:1")).rejects.toMatchObject({ code: "registry_unavailable" });
    expect(new Set(asked.splice(0))).toEqual(new Set(["CONNECT secure.test:443"]));
    await library.pull("team/tool:1");
    expect(asked).toEqual([]);
  });

  it("registries that are not allowed are refused without a connection", async () => {
    const registry = await FakeRegistry.start();
    const library = await openLibrary(registry, { registries: { allowed: ["registry.example"] } });
    await expect(library.use("team/tool:1")).rejects.toMatchObject({ code: "permission_denied" });
    expect(registry.requests).toEqual([]);
  });

  it("a missing image is named", async () => {
    const registry = await FakeRegistry.start();
    await expect((await openLibrary(registry)).use("team/none:1")).rejects.toMatchObject({ code: "image_not_found" });
  });

  it("an unreachable registry is named, with the next step", async () => {
    const registry = await FakeRegistry.start();
    await expect((await openLibrary(registry)).use("127.0.0.1:1/tool:1")).rejects.toMatchObject({
      code: "registry_unavailable",
      hint: expect.stringContaining("--insecure-registry"),
    });
  });
});

describe("room", () => {
  const filled = async (registry: FakeRegistry, repository: string): Promise<string> =>
    registry.push(
      madeImage([await madeLayer([{ name: "data", content: Buffer.alloc(100_000, repository) }])]),
      repository,
    );

  it("is made by removing the least recently used image, never one in use", async () => {
    const registry = await FakeRegistry.start();
    const library = await openLibrary(registry, { maxBytes: 250_000 });
    const used = await library.use(await filled(registry, "team/used"));
    (await library.use(await filled(registry, "team/idle"))).release();
    (await library.use(await filled(registry, "team/next"))).release();
    await expect
      .poll(async () => (await library.list()).map(({ names }) => names[0]))
      .toEqual([`${registry.host}/team/next:1`, `${registry.host}/team/used:1`]);
    expect(await readFile(join(used.path, "data"))).toHaveLength(100_000);
  });

  it("is made by prune, except for images in use", async () => {
    const registry = await FakeRegistry.start();
    const folder = await temporaryFolder();
    const [library, other] = [await openLibrary(registry, { folder }), await openLibrary(registry, { folder })];
    const used = await other.use(await filled(registry, "team/used"));
    (await library.use(await filled(registry, "team/idle"))).release();
    await expect.poll(async () => (await library.list()).filter(({ inUse }) => inUse)).toHaveLength(1);
    const pruned = await library.prune();
    expect(pruned.removed).toHaveLength(1);
    expect(pruned.freedBytes).toBeGreaterThan(100_000);
    expect((await library.list()).map(({ digest }) => digest)).toEqual([used.digest]);
    await expect(library.remove("team/used:1")).rejects.toMatchObject({ code: "image_in_use" });
    // A process that has ended holds nothing.
    await other.close();
    await library.remove("team/used:1");
    expect(await library.list()).toEqual([]);
    expect(await readdir(join(folder, "layers"))).toEqual([]);
    expect(await readdir(join(folder, "roots"))).toEqual([]);
  });

  it("is not made from an image that has another name", async () => {
    const registry = await FakeRegistry.start();
    const library = await openLibrary(registry);
    const image = madeImage([await madeLayer([HELLO])]);
    for (const tag of ["1", "2"]) (await library.use(registry.push(image, "team/tool", tag))).release();
    await library.remove("team/tool:1");
    expect((await library.list()).map(({ names }) => names)).toEqual([[`${registry.host}/team/tool:2`]]);
    await library.remove(image.digest.slice(7, 19));
    expect(await library.list()).toEqual([]);
  });

  it("folders that a killed server left are cleaned up", async () => {
    const registry = await FakeRegistry.start();
    const folder = await temporaryFolder();
    await mkdir(join(folder, "layers", "half.tmp", "fs"), { recursive: true });
    const { utimes } = await import("node:fs/promises");
    await utimes(join(folder, "layers", "half.tmp"), 1, 1);
    await (await openLibrary(registry, { folder })).prune();
    expect(await readdir(join(folder, "layers"))).toEqual([]);
  });
});

it("links in an image keep their targets", async () => {
  const registry = await FakeRegistry.start();
  const layer = await madeLayer([
    { name: "abs", type: "symlink", linkname: "/etc/passwd" },
    { name: "up", type: "symlink", linkname: "../../x" },
  ]);
  const { path } = await (await openLibrary(registry)).use(registry.push(madeImage([layer])));
  expect(await readlink(join(path, "abs"))).toBe("/etc/passwd");
  expect(await readlink(join(path, "up"))).toBe("../../x");
});
