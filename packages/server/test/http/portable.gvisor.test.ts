import type { Carried, CreatedSandboxRecord } from "@sandboxer/protocol";
import { expect, onTestFinished, test } from "vitest";
import { openGvisorServer } from "../backends/daytona/gvisor-lab.ts";
import { describeGvisor } from "../gvisor/support/describe-gvisor.ts";
import { openGvisor } from "../gvisor/support/open-backend.ts";
import { startTestServer } from "../websocket/support/test-server.ts";
import { describeTree, makeOddTree } from "./portable-tree.ts";
import { SnapshotClient } from "./snapshot-client.ts";

type Moved = CreatedSandboxRecord & { readonly carried: Carried };

describeGvisor("workspaces between gVisor and Daytona", (engine) => {
  test("a tree goes there and back", async () => {
    const lab = await openGvisorServer(engine);
    const daytona = lab.open();
    const gvisor = await openGvisor(engine);
    const api = new SnapshotClient(await startTestServer({ moreBackends: [daytona, gvisor.backend] }));
    onTestFinished(async () => {
      await daytona.close();
      await gvisor.close();
      await lab.close();
    });
    const filesOf = async (id: string) => (await api.server.manager.running(id)).handle.files;
    const move = async (id: string, backend: string): Promise<Moved> => {
      const { status, body } = await api.call<Moved>("POST", `/v1/sandboxes/${id}/move`, { backend });
      expect([status, body]).toEqual([201, expect.objectContaining({ backend, name: "box" })]);
      return body;
    };
    const made = await api.http.create({ name: "box", backend: "gvisor", env: { WORD: "carried" } });
    await makeOddTree(await filesOf(made.id));
    // The user cannot read what its mode forbids, neither here nor there.
    const shown = async (id: string) => {
      await api.sandbox(id).exec({ shell: "chmod 600 mode-0; chmod 700 folder-0; touch -d @1 mode-0 folder-0 ." });
      return describeTree(await filesOf(id));
    };
    const before = await shown(made.id);
    const there = await move(made.id, "daytona");
    expect(there.carried).toMatchObject({ loadable: true, memory: "lost" });
    expect(await shown(there.id)).toEqual(before);
    expect((await api.sandbox(there.id).exec({ shell: "echo $WORD" })).stdout).toBe("carried\n");
    const back = await move(there.id, "gvisor");
    // The agent has no capability for this one bit; some engines let it pass.
    const bit = "/workspace/mode-2750";
    const { [bit]: after, ...others } = await shown(back.id);
    expect(after?.replace(" 2750 ", " 750 ")).toBe(before[bit]?.replace(" 2750 ", " 750 "));
    expect({ ...others, [bit]: before[bit] }).toEqual(before);
  });

  test("a name that is no UTF-8 is refused by Daytona, and the sandbox goes on", async () => {
    const lab = await openGvisorServer(engine);
    const daytona = lab.open();
    const gvisor = await openGvisor(engine);
    const api = new SnapshotClient(await startTestServer({ moreBackends: [daytona, gvisor.backend] }));
    onTestFinished(async () => {
      await daytona.close();
      await gvisor.close();
      await lab.close();
    });
    const box = api.sandbox((await api.http.create({ backend: "gvisor" })).id);
    await box.exec({ shell: String.raw`printf x > $'\xff'` });
    const refused = await box.call("POST", "/move", { backend: "daytona" });
    expect([refused.status, refused.body.error.code]).toEqual([422, "not_supported"]);
    expect((await box.exec({ shell: "ls | wc -l" })).stdout.trim()).toBe("1");
    expect((await api.list()).items).toEqual([]);
  });
});
