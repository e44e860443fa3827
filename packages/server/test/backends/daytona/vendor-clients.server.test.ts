import { randomUUID } from "node:crypto";
import { Configuration, SandboxApi, type Sandbox, SnapshotsApi } from "@daytona/api-client";
import {
  Configuration as ToolboxConfiguration,
  FileSystemApi,
  InfoApi,
  ProcessApi,
  SystemApi,
} from "@daytona/toolbox-api-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../contract/programs.ts";
import { openServer } from "./lab.ts";
import type { DaytonaServer } from "./server/daytona-server.ts";

/**
 * The vendor's own generated clients against the test server: every call of the backend, so that the server stays true
 * to the vendor's API.
 */
describe("the vendor's clients on the test server", () => {
  let server: DaytonaServer;
  let control: { sandboxes: SandboxApi; snapshots: SnapshotsApi };
  let made: Sandbox;
  let inside: { files: FileSystemApi; process: ProcessApi; info: InfoApi; system: SystemApi };

  beforeAll(async () => {
    server = await openServer();
    const configuration = new Configuration({ basePath: server.apiUrl, accessToken: server.apiKey });
    control = { sandboxes: new SandboxApi(configuration), snapshots: new SnapshotsApi(configuration) };
    const labels = { "sandboxer.key": "k" };
    const body = { name: "mine", labels, env: { A: "1" }, networkBlockAll: true, autoStopInterval: 60 };
    ({ data: made } = await control.sandboxes.createSandbox(body, server.organizationId));
    await started();
    const basePath = `${made.toolboxProxyUrl}/${made.id}`;
    const headers = { authorization: `Bearer ${server.apiKey}` };
    const toolbox = new ToolboxConfiguration({ basePath, baseOptions: { headers } });
    inside = {
      files: new FileSystemApi(toolbox),
      process: new ProcessApi(toolbox),
      info: new InfoApi(toolbox),
      system: new SystemApi(toolbox),
    };
  });
  afterAll(() => server.close());

  const current = async () => (await control.sandboxes.getSandbox(made.id)).data;
  const started = () => eventually(async () => (await current()).state === "started", "the start");

  test("a sandbox is created, read by id and by name, and listed by labels with a cursor", async () => {
    expect(made).toMatchObject({
      name: "mine",
      labels: { "sandboxer.key": "k" },
      env: { A: "1" },
      networkBlockAll: true,
    });
    expect((await control.sandboxes.getSandbox("mine")).data.id).toBe(made.id);
    const { data } = await control.sandboxes.listSandboxes(
      server.organizationId,
      undefined,
      10,
      undefined,
      undefined,
      JSON.stringify({ "sandboxer.key": "k" }),
    );
    expect(data.items.map(({ id, state }) => [id, state])).toEqual([[made.id, "started"]]);
    expect(data.nextCursor).toBeNull();
  });

  test("its labels are replaced all at once", async () => {
    const labels = { "sandboxer.key": "k", "sandboxer.instance": "one" };
    expect((await control.sandboxes.replaceLabels(made.id, { labels })).data).toEqual({ labels });
    expect((await current()).labels).toEqual(labels);
    await control.sandboxes.replaceLabels(made.id, { labels: { "sandboxer.key": "k" } });
    expect((await current()).labels).toEqual({ "sandboxer.key": "k" });
  });

  test("it is stopped, started and deleted", async () => {
    expect((await control.sandboxes.stopSandbox(made.id)).data.state).toBe("stopping");
    await eventually(async () => (await current()).state === "stopped", "the stop");
    expect((await control.sandboxes.startSandbox(made.id)).data.state).toBe("starting");
    await started();
    const { data: other } = await control.sandboxes.createSandbox({});
    expect((await control.sandboxes.deleteSandbox(other.id)).data.state).toBe("destroyed");
    await expect(control.sandboxes.getSandbox(other.id)).rejects.toMatchObject({ response: { status: 404 } });
  });

  test("a snapshot is taken, read by its name, and a sandbox created from it", async () => {
    const name = `snapshot-${randomUUID()}`;
    expect((await control.sandboxes.createSandboxSnapshot(made.id, { name })).data.id).toBe(made.id);
    expect((await control.snapshots.getSnapshot(name)).data).toMatchObject({ name, state: "active" });
    const { data: copy } = await control.sandboxes.createSandbox({ snapshot: name });
    expect(copy.snapshot).toBe(name);
    const wrong = control.sandboxes.createSandbox({ snapshot: "debian:13" });
    await expect(wrong).rejects.toMatchObject({ response: { status: 400 } });
  });

  test("a snapshot is removed by its id, not by its name", async () => {
    const name = `snapshot-${randomUUID()}`;
    await control.sandboxes.createSandboxSnapshot(made.id, { name });
    const { data } = await control.snapshots.getSnapshot(name);
    await expect(control.snapshots.removeSnapshot(name)).rejects.toMatchObject({ response: { status: 404 } });
    await control.snapshots.removeSnapshot(data.id);
    await expect(control.snapshots.getSnapshot(name)).rejects.toMatchObject({ response: { status: 404 } });
  });

  test("files are uploaded, downloaded, described, moved and deleted", async () => {
    const { files } = inside;
    await files.createFolder("/workspace/folder", "0755");
    const { data: uploaded } = await files.uploadFile("/workspace/folder/a", new File(["content"], "a"));
    expect(uploaded).toMatchObject({ path: "/workspace/folder/a" });
    await files.setFilePermissions("/workspace/folder/a", undefined, undefined, "0640");
    const { data: described } = await files.getFileInfo("/workspace/folder/a");
    expect(described).toMatchObject({ name: "a", size: 7, isDir: false, permissions: "0640", mode: "-rw-r-----" });
    expect((await files.listFiles("/workspace/folder")).data.map(({ name }) => name)).toEqual(["a"]);
    await files.moveFile("/workspace/folder/a", "/workspace/folder/b");
    const { data } = await files.downloadFile("/workspace/folder/b", { responseType: "arraybuffer" });
    expect(Buffer.from(data as unknown as ArrayBuffer).toString("utf8")).toBe("content");
    await expect(files.deleteFile("/workspace/folder")).rejects.toMatchObject({ response: { status: 400 } });
    await files.deleteFile("/workspace/folder", true);
    const gone = files.getFileInfo("/workspace/folder");
    await expect(gone).rejects.toMatchObject({ response: { status: 404, data: { code: "FILE_NOT_FOUND" } } });
  });

  test("a command is executed; in a session it has stdin, a log and an exit code", async () => {
    const { process } = inside;
    const { data: executed } = await process.executeCommand({ command: "echo $B; exit 3", envs: { B: "2" } });
    expect(executed).toEqual({ exitCode: 3, result: "2\n" });

    const sessionId = randomUUID();
    await process.createSession({ sessionId });
    await expect(process.createSession({ sessionId })).rejects.toMatchObject({ response: { status: 409 } });
    const request = { command: 'read x; echo "got $x"; echo bad >&2; exit 4', runAsync: true, suppressInputEcho: true };
    const { data: running } = await process.sessionExecuteCommand(sessionId, request);
    await process.sendInput(sessionId, running.cmdId, { data: "hello" });
    const command = async () => (await process.getSessionCommand(sessionId, running.cmdId)).data;
    await eventually(async () => (await command()).exitCode === 4, "the exit code");
    const { data: logs } = await process.getSessionCommandLogs(sessionId, running.cmdId);
    expect(logs).toMatchObject({ stdout: "got hello\n", stderr: "bad\n" });
    expect((await process.listSessions()).data.map((session) => session.sessionId)).toContain(sessionId);
    expect((await process.getSession(sessionId)).data.commands).toMatchObject([{ id: running.cmdId, exitCode: 4 }]);
    await process.deleteSession(sessionId);
    await expect(process.getSession(sessionId)).rejects.toMatchObject({ response: { status: 404 } });
  });

  test("a terminal is created, described, resized and deleted", async () => {
    const { process } = inside;
    const id = randomUUID();
    expect((await process.createPtySession({ id, rows: 24, cols: 80 })).data).toEqual({ sessionId: id });
    expect((await process.resizePtySession(id, { rows: 40, cols: 100 })).data).toMatchObject({ rows: 40, cols: 100 });
    expect((await process.listPtySessions()).data.sessions.map((session) => session.id)).toEqual([id]);
    await process.deletePtySession(id);
    await expect(process.getPtySession(id)).rejects.toMatchObject({ response: { status: 404 } });
  });

  test("the daemon reports its working folder and its usage", async () => {
    expect((await inside.info.getWorkDir()).data).toEqual({ dir: "/workspace" });
    expect((await inside.system.getSystemMetrics()).data.memUsed).toBeGreaterThanOrEqual(0);
  });

  test("a wrong key is refused, and so is another organization", async () => {
    const wrong = new SandboxApi(new Configuration({ basePath: server.apiUrl, accessToken: "wrong" }));
    await expect(wrong.getSandbox(made.id)).rejects.toMatchObject({ response: { status: 401 } });
    const elsewhere = control.sandboxes.getSandbox(made.id, randomUUID());
    await expect(elsewhere).rejects.toMatchObject({ response: { status: 403 } });
  });
});
