import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import type { CheckpointRepository } from "../../../../src/checkpoints/checkpoint-repository.ts";
import type { ManagerContext } from "../../../../src/manager/context.ts";
import { namingWholeCheckpoint } from "../../../../src/manager/observing/integrity/whole-checkpoint.ts";
import { newId, newKey, openStore, serverKeys, serverOn } from "../../../checkpoints/keys/key-lab.ts";

test("damage is reported even if the key of another checkpoint is missing", async () => {
  const { store } = await openStore();
  const keys = new Map([["main", newKey()]]);
  const server = serverOn(store, serverKeys(keys, "main"));
  const sandboxId = newId();
  const first = await server.save(sandboxId, { text: Buffer.from("first") });
  const second = await server.save(sandboxId, { text: Buffer.from("second") }, { parent: first.name });
  const damage = new SandboxerError("image_damaged", "It is damaged.");
  const named = (checkpoints: CheckpointRepository) => {
    const context = { durable: { checkpoints } } as unknown as ManagerContext;
    const head = { checkpoint: second } as never;
    return namingWholeCheckpoint(context, { sandboxId, head, damaged: second.name }, damage, {});
  };
  expect(await named(server.checkpoints)).toMatchObject({ details: { whole_checkpoint: first.name } });
  expect(await named(serverOn(store).checkpoints)).toBe(damage);
});
