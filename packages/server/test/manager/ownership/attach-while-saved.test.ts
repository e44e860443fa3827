import { SandboxerError, type Head } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { attachSandbox, type AttachRequest } from "../../../src/manager/ownership/attach.ts";
import type { ManagerContext } from "../../../src/manager/context.ts";

const ID = "7f2c1c9e-6f0e-4b38-9a52-0f3f2b8f5d11";
const HEAD = { owner: "here", epoch: 3 } as Head;
const request: AttachRequest = {
  sandboxId: ID,
  credentials: { token: undefined, trusted: true },
  checkpoint: undefined,
  onRestoring: () => {},
  onOwnership: () => {},
};

/** A server that saves a sandbox with a client, to give it up; `read` is what the store says of it meanwhile. */
async function attach(read: (sandboxes: Map<string, unknown>) => Head): Promise<unknown> {
  const live = { id: ID, state: "saving", client: {}, facts: { tokenHash: null } };
  const sandboxes = new Map<string, unknown>([[ID, live]]);
  const ownership = { instanceId: "here", held: () => HEAD, read: async () => read(sandboxes) };
  const storedHead = () => Promise.reject(new Error("It is looked for elsewhere."));
  const context = { sandboxes, storedHead, options: { durable: { ownership } } } as unknown as ManagerContext;
  return await attachSandbox(context, request).catch((error: unknown) =>
    error instanceof SandboxerError ? error.code : (error as Error).message,
  );
}

test("a sandbox that is being saved with its client is in use", async () => {
  expect(await attach(() => HEAD)).toBe("sandbox_in_use");
});

test("a sandbox that ended by the time that the store has answered is looked for elsewhere", async () => {
  const read = (sandboxes: Map<string, unknown>): Head => (sandboxes.delete(ID), HEAD);
  expect(await attach(read)).toBe("It is looked for elsewhere.");
});

test("a store that does not answer releases none", async () => {
  const read = (): Head => {
    throw new SandboxerError("store_unavailable", "the store is away");
  };
  expect(await attach(read)).toBe("sandbox_in_use");
});
