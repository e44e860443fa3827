import { createHash, randomUUID } from "node:crypto";
import type { DamagedSandbox, SandboxRecord } from "@sandboxer/protocol";
import { expect } from "vitest";
import { checkpointKey } from "../../../src/checkpoints/checkpoint-names.ts";
import { collectGarbage } from "../../../src/collection/collect-garbage.ts";
import type { Findings } from "../../../src/collection/garbage.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import type { TestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

export interface Listed {
  readonly items: SandboxRecord[];
  readonly damaged: DamagedSandbox[];
  readonly next_cursor: string | null;
}

/** Stored sandboxes, oldest first. */
export async function storedSandboxes(http: HttpClient, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let number = 0; number < count; number++) {
    const { id } = await http.create({ name: `box-${number}` });
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    ids.push(id);
  }
  return ids;
}

/** One of three stored sandboxes cannot be read: it is named, and everything else works as if it did not exist. */
export async function expectDamageLeftAlone(
  server: TestServer,
  [first = "", damaged = "", last = ""]: readonly string[],
  object: string,
): Promise<void> {
  const http = new HttpClient(server);
  const { body: list } = await http.call<Listed>("GET", "/v1/sandboxes");
  expect(list.items.map(({ id }) => id)).toEqual([last, first]);
  const named = expect.stringContaining(object) as unknown;
  expect(list.damaged).toEqual([
    { id: damaged, object: named, message: named, next_step: expect.stringContaining("Restore it from a backup") },
  ]);
  expect((await http.call<Listed>("GET", "/v1/sandboxes?name=box-0")).body).toMatchObject({
    items: [{ id: first }],
    damaged: [],
  });
  const answers = [
    await http.call<ErrorAnswer>("GET", `/v1/sandboxes/${damaged}`),
    await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${damaged}/resume`),
    await http.call<ErrorAnswer>("DELETE", `/v1/sandboxes/${damaged}`),
  ];
  for (const { status, body } of answers) {
    expect([status, body.error.code, body.error.retryable]).toEqual([422, "image_damaged", false]);
    expect(body.error).toMatchObject({
      message: named,
      hint: expect.stringContaining("backup"),
      details: { object: named },
    });
  }
  expect((await server.attach(damaged).untilClosed()).at(-1)).toBe(4000);
  expect((await http.call("GET", "/v1/instances")).status).toBe(200);
  expect((await http.call("POST", `/v1/sandboxes/${first}/resume`)).status).toBe(200);
  expect((await http.call("POST", `/v1/sandboxes/${first}/checkpoint`)).status).toBe(200);

  const unpublished = checkpointKey(last, `checkpoint_${Date.now() + 3_600_000}.img`);
  await storeOf(server).write(unpublished, [Buffer.from("never published")]);
  const { garbage, left } = await collect(server);
  expect(garbage.map(({ key }) => key)).toContain(unpublished);
  expect(left).toContainEqual({ key: named, reason: "its head cannot be read" });
  expect((await http.call<Listed>("GET", "/v1/sandboxes")).body.damaged).toHaveLength(1);
}

/** Removes what nothing needs, as `sandboxer gc --apply` does. */
export async function collect(server: TestServer): Promise<Findings> {
  return await collectGarbage({ store: storeOf(server), clock: systemClock, apply: true, keep: {} });
}

function storeOf({ instances }: TestServer): ObjectStore {
  if (instances === undefined) throw new Error("The server has no store.");
  return instances.store;
}

/** Bytes that are no record, and no two of which are alike. */
export function noise(): Buffer {
  return createHash("sha256").update(randomUUID()).digest();
}
