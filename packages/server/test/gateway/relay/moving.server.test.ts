import { request } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { call, pair } from "./support.ts";

/** The time of a handoff is not what is tested. */
const PATIENT = { handoffTimeoutMs: 60_000 };

/** Holds the save of the owner, and starts a move to the other server. */
async function moving() {
  const both = await pair(PATIENT);
  const { owner, url, box } = both;
  const gate = Promise.withResolvers<void>();
  owner.backend.faults.set("snapshot", { until: gate.promise, times: 1 });
  const moved = call("POST", `${url}/resume`);
  await eventually("the owner saves it", async () => (await owner.manager.find(box.id)).state === "saving");
  return { ...both, gate, moved };
}

test("calls that arrive while a sandbox moves wait for its arrival, at both servers", async () => {
  const { owner, asked, box, url, gate, moved } = await moving();
  const run = { shell: "echo x >> runs; cat runs" };
  const atOwner = call("POST", `${owner.httpUrl}/v1/sandboxes/${box.id}/exec`, run);
  const atNewcomer = call("GET", `${url}/stats`);
  gate.resolve();
  expect((await moved).body).toMatchObject({ owner: { url: asked.httpUrl } });
  expect(await atOwner).toMatchObject({ status: 200, body: { stdout: "x\n" } });
  expect((await atNewcomer).status).toBe(200);
});

test("a caller that disconnects while it waits leaves nothing behind", async () => {
  const { owner, box, gate, moved } = await moving();
  const before = new Set(owner.sockets);
  const waiting = request(`${owner.httpUrl}/v1/sandboxes/${box.id}/stats`, { agent: false }).on("error", () => {});
  waiting.end();
  const own = (): Socket | undefined => [...owner.sockets].find((socket) => !before.has(socket));
  await eventually("it has arrived", () => own() !== undefined);
  waiting.destroy();
  gate.resolve();
  expect((await moved).status).toBe(200);
  await eventually("its connection is closed", () => own() === undefined);
});

test("/attach moves a sandbox, and with relay=allow its owner serves the client", async () => {
  const { owner, asked, box } = await pair(PATIENT);
  const relayed = asked.attach(box.id, "?relay=allow");
  expect(await relayed.outcome()).toEqual(["RUNNING"]);
  expect(owner.manager.epochOf(box.id)).toBe(1);
  await relayed.run("bash", "echo here").until("EXECUTION_DONE");
  expect(relayed.output).toBe("here\n");
  await relayed.leave();
  await eventually("the owner has noticed", async () => (await owner.live(box.id)).client === undefined);
  const taken = asked.attach(box.id);
  expect(await taken.outcome()).toContain("RUNNING");
  expect(owner.manager.epochOf(box.id)).toBeUndefined();
});

test("/attach with relay=allow takes over the sandbox of an unreachable owner", async () => {
  const { owner, asked, box } = await pair({ ...PATIENT, advertiseUrl: "http://127.0.0.1:9" });
  const client = asked.attach(box.id, "?relay=allow");
  expect(await client.outcome()).toContain("RUNNING");
  expect(owner.manager.epochOf(box.id)).toBeUndefined();
});
