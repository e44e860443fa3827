import { HarnessSandboxAuthenticationError, type HarnessV1SandboxProvider } from "@ai-sdk/harness";
import { type HarnessAgentAdapter, prepareHarnessSandboxTemplate } from "@ai-sdk/harness/agent";
import { Sandbox } from "@sandboxer/client";
import { startTestServer, type TestServer, type TestServerOptions } from "@sandboxer/client/testing";
import { expect, onTestFinished, test } from "vitest";
import { sandboxerProvider } from "../src/index.ts";

async function started(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await startTestServer(options);
  onTestFinished(() => server.close());
  return server;
}

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  return await new Response(stream).text();
}

test("a session runs commands, and reads and writes files", async () => {
  const { client } = await started();
  // This does not compile if our provider differs from the published interface.
  const provider: HarnessV1SandboxProvider = sandboxerProvider({ client, ports: [3000] });
  expect(provider).toMatchObject({ specificationVersion: "harness-sandbox-v1", providerId: "sandboxer" });
  const session = await provider.createSession({ sessionId: "one" });
  expect(session.defaultWorkingDirectory).toMatch(/^\//);
  expect(session.description).toContain(session.defaultWorkingDirectory);
  const env = { WORD: "hello" };
  expect(await session.run({ command: "echo $WORD; pwd; exit 3", env, workingDirectory: "/tmp" })).toEqual({
    exitCode: 3,
    stdout: "hello\n/tmp\n",
    stderr: "",
  });
  await session.writeTextFile({ path: "deep/notes.txt", content: "one\ntwo\nthree\n" });
  const path = `${session.defaultWorkingDirectory}/deep/notes.txt`;
  expect(await session.readTextFile({ path })).toBe("one\ntwo\nthree\n");
  expect(await session.readTextFile({ path, startLine: 2, endLine: 2 })).toBe("two");
  expect(await session.readTextFile({ path, startLine: 3, endLine: 100 })).toBe("three\n");
  await session.writeBinaryFile({ path: "bytes", content: new Uint8Array([0, 255]) });
  expect(await session.readBinaryFile({ path: "bytes" })).toEqual(new Uint8Array([0, 255]));
  await session.writeFile({ path: "streamed", content: new Blob(["streamed"]).stream() });
  expect(await textOf((await session.readFile({ path: "streamed" })) ?? new ReadableStream())).toBe("streamed");
  await session.writeTextFile({ path: "latin", content: "é", encoding: "latin1" });
  expect(await session.readTextFile({ path: "latin", encoding: "latin1" })).toBe("é");
  for (const read of [session.readFile, session.readBinaryFile, session.readTextFile]) {
    expect(await read({ path: "missing" })).toBeNull();
  }
});

test("a spawned process has streams, an end, and can be killed or aborted", async () => {
  const { client } = await started();
  const session = (await sandboxerProvider({ client }).createSession()).restricted();
  const process = await session.spawn({ command: "echo out; echo err >&2; exit 2" });
  expect(process.pid).toBeGreaterThan(0);
  expect([await textOf(process.stdout), await textOf(process.stderr)]).toEqual(["out\n", "err\n"]);
  expect(await process.wait()).toEqual({ exitCode: 2 });
  await process.kill();
  const endless = await session.spawn({ command: "sleep 1000" });
  await endless.kill();
  expect(await endless.wait()).toEqual({ exitCode: 137 });
  const abort = new AbortController();
  const aborted = await session.spawn({ command: "sleep 1000", abortSignal: abort.signal });
  abort.abort(new Error("enough"));
  await expect(aborted.wait()).rejects.toThrow("enough");
});

test("a stopped session is paused, and resumes in another process and on another server", async () => {
  const first = await started();
  const provider = sandboxerProvider({ client: first.client });
  const session = await provider.createSession({ sessionId: "conversation 7" });
  await session.run({ command: "echo kept > file" });
  await session.stop();
  await session.stop();
  expect((await session.sandbox.refresh()).state).toBe("stored");
  const second = await started({ store: first.store });
  const elsewhere = sandboxerProvider({ client: second.client });
  const resumed = await elsewhere.resumeSession({ sessionId: "conversation 7" });
  expect(resumed.id).toBe(session.id);
  expect(await resumed.readTextFile({ path: "file" })).toBe("kept\n");
  expect((await elsewhere.resumeSession({ sessionId: session.id })).id).toBe(session.id);
  await resumed.destroy();
  await resumed.destroy();
  await resumed.stop();
  await expect(elsewhere.resumeSession({ sessionId: "conversation 7" })).rejects.toMatchObject({
    code: "sandbox_not_found",
  });
});

test("the harness prepares a template once; later sessions begin with its snapshot", async () => {
  const { client } = await started();
  const provider = sandboxerProvider({ client });
  const recipe = {
    harnessId: "scripted",
    bootstrapDir: "bootstrap",
    files: [{ path: "bootstrap/tool.txt", content: "tool" }],
    commands: [{ command: "echo installed > installed.txt" }],
  };
  const harness = { harnessId: "scripted", getBootstrap: async () => recipe } as unknown as HarnessAgentAdapter;
  await prepareHarnessSandboxTemplate({ harness, sandboxProvider: provider });
  // Nobody can resume the sandbox of the preparation.
  expect(await Array.fromAsync(Sandbox.list({ state: "running" }, { client }))).toEqual([]);
  const [snapshot] = await Array.fromAsync(client.snapshots.list());
  expect(snapshot?.name).toMatch(/^ai-sdk-[0-9a-f]{16}$/);
  const identity = snapshot?.name?.slice("ai-sdk-".length) ?? "";
  const session = await provider.createSession({
    sessionId: "one",
    identity,
    onFirstCreate: async () => Promise.reject(new Error("It was prepared already.")),
  });
  expect(await session.readTextFile({ path: "bootstrap/installed.txt" })).toBe("installed\n");
  await session.stop();
  expect((await provider.resumeSession({ sessionId: "one" })).id).toBe(session.id);
});

test("a preparation that fails leaves no sandbox", async () => {
  const { client } = await started();
  const failing = sandboxerProvider({ client }).createSession({
    identity: "abc",
    onFirstCreate: async () => Promise.reject(new Error("no")),
  });
  await expect(failing).rejects.toThrow("no");
  expect(await Array.fromAsync(Sandbox.list({ state: "running" }, { client }))).toEqual([]);
  expect(await Array.fromAsync(client.snapshots.list())).toEqual([]);
});

test("network policies and ports apply to the sandbox", async () => {
  const server = await started({ apiKeys: ["secret-key-of-the-test"] });
  const session = await sandboxerProvider({ client: server.client, ports: [3000] }).createSession({ sessionId: "one" });
  expect(session.ports).toEqual([3000]);
  await session.setPorts?.([4000]);
  expect(session.ports).toEqual([4000]);
  const { url, headers } = await session.getPortEndpoint({ port: 4000, protocol: "ws" });
  expect(url).toMatch(new RegExp(`^ws://4000-${session.id}\\.localhost:\\d+/$`));
  expect(headers).toEqual({ authorization: "Bearer secret-key-of-the-test" });
  expect(await session.getPortUrl({ port: 4000 })).toMatch(/^http:/);
  const policyAfter = async (policy: Parameters<NonNullable<typeof session.setNetworkPolicy>>[0]) => {
    await session.setNetworkPolicy?.(policy);
    return (await session.sandbox.refresh()).network;
  };
  expect(await policyAfter({ mode: "allow-all" })).toBe("open");
  expect(await policyAfter({ mode: "deny-all" })).toBe("none");
  const custom = { mode: "custom", allowedHosts: ["example.com"], deniedCIDRs: ["10.0.0.0/8"] } as const;
  expect(await policyAfter(custom)).toEqual({ allow: ["example.com"], deny: ["10.0.0.0/8"] });
});

test("wrong credentials throw the harness's own error", async () => {
  const { url } = await started({ apiKeys: ["secret-key-of-the-test"] });
  const failure = await sandboxerProvider({ url, apiKey: "wrong" })
    .createSession()
    .catch((error: unknown) => error);
  expect(HarnessSandboxAuthenticationError.isInstance(failure)).toBe(true);
});

test("a session can be forked and promoted with the SDK", async () => {
  const { client } = await started();
  const session = await sandboxerProvider({ client }).createSession({ sessionId: "one" });
  await session.run({ command: "echo old > file" });
  const [fork] = await session.sandbox.fork();
  await fork?.exec("echo new > file");
  await fork?.promote();
  expect(await session.readTextFile({ path: "file" })).toBe("new\n");
});
