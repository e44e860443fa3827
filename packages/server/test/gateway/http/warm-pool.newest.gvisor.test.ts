import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../backends/contract/programs.ts";
import { describeGvisor } from "../../backends/gvisor/support/describe-gvisor.ts";
import { openGvisor } from "../../backends/gvisor/support/open-backend.ts";
import { warmOptions } from "../../backends/gvisor/support/warm-options.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient } from "./support.ts";

interface ServerInfo {
  readonly sandboxes: number;
  readonly warm_pool: {
    readonly ready: number;
    readonly preparing: number;
    readonly handed_out: number;
    readonly missed: number;
  };
}

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

describeGvisor("warm sandboxes of a server", (engine) => {
  const [one, other] = ["one-key-of-this-server", "other-key-of-this-server"];

  async function open() {
    const gvisor = await openGvisor(engine, { warm: warmOptions() });
    onTestFinished(() => gvisor.close());
    const { backend } = gvisor;
    const backends = { wrapBackend: () => backend, moreBackends: [backend] };
    const server = await startTestServer({ ...backends, apiKeys: [one, other] });
    const http = new HttpClient(server);
    const info = async (): Promise<ServerInfo> =>
      (await http.call<ServerInfo>("GET", "/v1/server", undefined, bearer(one))).body;
    const create = async (key: string, body: object = {}): Promise<number> =>
      (await http.call("POST", "/v1/sandboxes", body, bearer(key))).status;
    const untilReady = (): Promise<void> =>
      eventually(async () => {
        const { ready, preparing } = (await info()).warm_pool;
        return ready > 0 && preparing === 0;
      }, "one that is ready");
    return { server, http, info, create, untilReady };
  }

  test("are in no list and no count, and go to the next request", async () => {
    const { server, http, info, create, untilReady } = await open();
    expect(await info()).toMatchObject({ sandboxes: 0, warm_pool: { max: 2, ready: 0, preparing: 0 } });
    expect(await create(one)).toBe(201);
    await untilReady();
    expect(await info()).toMatchObject({ sandboxes: 1, warm_pool: { ready: 1, handed_out: 0, missed: 1 } });
    const { body } = await http.call<{ items: object[] }>("GET", "/v1/sandboxes", undefined, bearer(one));
    expect(body.items).toHaveLength(1);
    const metrics = await (await fetch(`${server.httpUrl}/metrics`, bearer(one))).text();
    expect(metrics).toContain('sandboxer_warm_sandboxes{state="ready"} 1');
    expect(metrics).toContain('sandboxer_warm_sandboxes_total{outcome="missed"} 1');
    expect(metrics).toContain('sandboxer_sandboxes{state="running"} 1');
    // It has nothing of who asked first, so it may be anybody's.
    expect(await create(other)).toBe(201);
    expect(await info()).toMatchObject({ sandboxes: 2, warm_pool: { handed_out: 1, missed: 1 } });
    await server.manager.drain();
    expect(await info()).toMatchObject({ sandboxes: 0, warm_pool: { ready: 0, preparing: 0 } });
  });

  test("with the state of a snapshot that was restored before, until the snapshot is removed", async () => {
    const { server, http, info, untilReady } = await open();
    const call = async <Body>(method: string, path: string, body?: object): Promise<Body> => {
      const answer = await http.call<Body>(method, path, body, bearer(one));
      expect(answer.status).toBeLessThan(300);
      return answer.body;
    };
    const { id } = await call<{ id: string }>("POST", "/v1/sandboxes", {});
    await call("POST", `/v1/sandboxes/${id}/exec`, { command: ["bash", "-c", "echo kept > /workspace/file"] });
    const { id: snapshotId } = await call<{ id: string }>("POST", `/v1/sandboxes/${id}/snapshot`, {});
    const restore = (): Promise<{ id: string }> => call("POST", `/v1/snapshots/${snapshotId}/restore`, {});
    const restored = [await restore(), await restore()];
    await untilReady();
    await eventually(async () => (await info()).warm_pool.ready === 2, "one of each");
    const { handed_out: before } = (await info()).warm_pool;
    restored.push(await restore());
    expect((await info()).warm_pool.handed_out).toBe(before + 1);
    const newest = restored.at(-1)?.id ?? "";
    const shown = await call<{ stdout: string }>("POST", `/v1/sandboxes/${newest}/exec`, {
      command: ["bash", "-c", "cat /workspace/file; hostname"],
    });
    expect(shown.stdout).toBe(`kept\nsandbox-${newest.slice(0, 8)}\n`);
    for (const each of [id, ...restored.map((sandbox) => sandbox.id)]) await call("DELETE", `/v1/sandboxes/${each}`);
    await eventually(async () => (await info()).warm_pool.ready === 2, "another one");
    await call("DELETE", `/v1/snapshots/${snapshotId}`);
    await eventually(async () => (await info()).warm_pool.ready <= 1, "the end of what was loaded of it");
    await server.manager.drain();
  });

  test("with their own limits are given only to the key that requested them", async () => {
    const { info, create, untilReady } = await open();
    const body = { resources: { processes: 99 } };
    expect(await create(one, body)).toBe(201);
    await untilReady();
    expect(await create(other, body)).toBe(201);
    expect((await info()).warm_pool).toMatchObject({ handed_out: 0, missed: 2 });
    expect(await create(one, body)).toBe(201);
    expect((await info()).warm_pool).toMatchObject({ handed_out: 1, missed: 2 });
  });
});
