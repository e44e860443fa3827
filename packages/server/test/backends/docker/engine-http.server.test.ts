import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseEngineAddress } from "../../../src/backends/docker/engine/address.ts";
import { DockerEngine } from "../../../src/backends/docker/engine/docker-engine.ts";
import { unreachable } from "../../../src/backends/docker/engine/engine-errors.ts";

let folder: string;
let server: Server;
let answer: RequestListener;
let paths: string[];
let engine: DockerEngine;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-http-"));
  paths = [];
  server = createServer((request, response) => {
    paths.push(`${request.method} ${request.url}`);
    if (request.url === "/_ping") return void response.setHeader("Api-Version", "1.41").end("OK");
    answer(request, response);
  });
  const socket = join(folder, "docker.sock");
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  engine = new DockerEngine(`unix://${socket}`);
});

afterEach(async () => {
  engine.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

const says = (status: number, body: unknown): RequestListener => {
  return (request, response) => {
    request.resume();
    response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
  };
};

test("an older engine gets requests in its own version of the API", async () => {
  answer = says(200, []);
  await engine.listContainers(["a=b"]);
  expect(paths).toEqual([
    "GET /_ping",
    "GET /v1.41/containers/json?all=true&filters=%7B%22label%22%3A%5B%22a%3Db%22%5D%7D",
  ]);
});

test.each([
  [500, "write /var/lib/docker/x: no space left on device", "no_space", "prune"],
  [400, "unknown or invalid runtime name: runsc", "backend_unavailable", "daemon.json"],
  [409, "name in use", "wrong_state", ""],
  [403, "authorization denied by plugin", "permission_denied", ""],
  [500, "something", "backend_unavailable", ""],
])("status %i with %s is %s", async (status, message, code, hint) => {
  answer = says(status, { message });
  await expect(engine.start("id")).rejects.toMatchObject({
    code,
    hint: expect.stringContaining(hint),
    details: { status },
  });
  await expect(engine.start("id")).rejects.toThrow(message);
});

test("a container that could not be frozen in time is paused at a later attempt; another refusal is final", async () => {
  const unable = says(500, {
    message: "cannot pause container id: OCI runtime pause failed: unable to freeze: unknown",
  });
  answer = (request, response) => (paths.length < 4 ? unable : says(204, ""))(request, response);
  await engine.pause("id");
  expect(paths.slice(1)).toEqual(Array.from({ length: 3 }, () => "POST /v1.41/containers/id/pause"));
  answer = says(409, { message: "Container id is already paused" });
  await expect(engine.pause("id")).rejects.toMatchObject({ code: "wrong_state" });
  expect(paths).toHaveLength(5);
});

test("a missing object is undefined, or not an error", async () => {
  answer = says(404, { message: "No such container: id" });
  expect(await engine.container("id")).toBeUndefined();
  expect(await engine.image("name")).toBeUndefined();
  expect(await engine.hasPath("id", "/x")).toBe(false);
  await engine.removeContainer("id");
  await engine.removeImage("name");
});

test.each(["<html>hello</html>", "[1]", "{}", ""])("an answer of %j is not accepted as the engine's", async (body) => {
  answer = says(200, body);
  await expect(engine.info()).rejects.toMatchObject({
    code: "backend_unavailable",
    hint: expect.stringContaining("address of a Docker engine"),
  });
});

test("an endless answer is not read into memory", async () => {
  answer = (_, response) =>
    void Readable.from(endless())
      .on("error", () => {})
      .pipe(response);
  await expect(engine.info()).rejects.toMatchObject({ code: "backend_unavailable" });
});

test("errors in the middle of a long answer count", async () => {
  answer = says(200, '{"status":"Pulling"}\n{"error":"manifest unknown"}\n');
  await expect(engine.pull("name")).rejects.toThrow("Docker could not get the image name: manifest unknown");
  answer = says(200, '{"stream":"Loaded image: a:1\\n"}\n');
  await expect(engine.loadImage(Readable.from(["tar"]))).resolves.toBeUndefined();
});

test("a refused attach reports the reason, and a cancelled one stops", async () => {
  answer = says(409, { message: "container is paused" });
  await expect(engine.attach("id")).rejects.toThrow("container is paused");
  answer = () => {};
  const controller = new AbortController();
  const waiting = engine.wait("id", { signal: controller.signal });
  controller.abort(new Error("called off"));
  await expect(waiting).rejects.toThrow("called off");
});

test("a missing or forbidden engine is an error with the next step", async () => {
  const nowhere = new DockerEngine(`unix://${join(folder, "nobody.sock")}`);
  await expect(nowhere.info()).rejects.toMatchObject({
    code: "backend_unavailable",
    hint: expect.stringContaining("--docker-host"),
  });
  const address = parseEngineAddress("unix:///var/run/docker.sock");
  const denied = Object.assign(new Error("connect EACCES"), { code: "EACCES" });
  expect(unreachable(address, denied)).toMatchObject({ hint: expect.stringContaining("group docker") });
  const closed = new DockerEngine("tcp://127.0.0.1:1");
  await expect(closed.info()).rejects.toMatchObject({ code: "backend_unavailable" });
});

function* endless(): Generator<string> {
  for (;;) yield " ".repeat(1 << 16);
}
