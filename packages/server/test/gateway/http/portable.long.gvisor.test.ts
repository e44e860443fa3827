import type { Carried, CreatedSandboxRecord } from "@sandboxer/protocol";
import { expect, onTestFinished, test } from "vitest";
import { openGvisorServer } from "../../backends/daytona/gvisor-lab.ts";
import { describeGvisor } from "../../backends/gvisor/support/describe-gvisor.ts";
import { openGvisor } from "../../backends/gvisor/support/open-backend.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import {
  describeInside,
  MAKE_ATTRIBUTES,
  MAKE_HARD_LINKS,
  makeOddTree,
  SHOW_ATTRIBUTES,
  SHOW_HARD_LINKS,
} from "./portable-tree.ts";
import { SnapshotClient } from "./snapshot-client.ts";

type Moved = CreatedSandboxRecord & { readonly carried: Carried };

describeGvisor("workspaces between gVisor and Daytona", (engine) => {
  test("a tree moves there and back", { timeout: 240_000 }, async () => {
    const lab = await openGvisorServer(engine);
    const daytona = lab.open();
    const gvisor = await openGvisor(engine);
    const api = new SnapshotClient(await startTestServer({ moreBackends: [daytona, gvisor.backend] }));
    onTestFinished(async () => {
      await daytona.close();
      await gvisor.close();
      await lab.close();
    });
    const filesOf = async (id: string) => (await api.server.live(id)).handle.files;
    const move = async (id: string, backend: string): Promise<Moved> => {
      const { status, body } = await api.call<Moved>("POST", `/v1/sandboxes/${id}/move`, { backend });
      expect([status, body]).toEqual([200, expect.objectContaining({ id, backend, name: "box" })]);
      return body;
    };
    const made = await api.http.create({ name: "box", backend: "gvisor", env: { WORD: "carried" } });
    await makeOddTree(await filesOf(made.id));
    const shell = async (id: string, text: string): Promise<string> => {
      const { exit_code, stdout, stderr } = await api.sandbox(id).exec({ shell: text });
      expect([exit_code, stderr]).toEqual([0, ""]);
      return stdout;
    };
    await shell(made.id, `${MAKE_HARD_LINKS}\n${MAKE_ATTRIBUTES}`);
    const attributes = await shell(made.id, SHOW_ATTRIBUTES);
    expect(attributes).toContain("b'user.odd=%\\xff', b'\\x00\\x01");

    await shell(made.id, "truncate -s 60M sparse; printf end >> sparse; truncate -s 80M sparse");

    // On the same backend, from a capture that stays: with all of it, whatever the modes.
    const { id: captured } = await api.take(made.id, { mode: "workspace" });
    const copy = (await api.restore(captured)) as Moved;
    expect(copy.carried).toMatchObject({ hard_links: { kept: 4, lost: 0 }, xattrs: { kept: 5, lost: 0 } });
    expect(await shell(copy.id, SHOW_ATTRIBUTES)).toBe(attributes);
    expect((await (await api.server.live(copy.id)).handle.stats()).diskBytes).toBeLessThan(64 * 1024 * 1024);
    const sum = "sha256sum sparse; rm sparse";
    expect(await shell(copy.id, sum)).toBe(await shell(made.id, sum));
    expect(await shell(copy.id, SHOW_HARD_LINKS)).toBe("one\nothers\n");

    // The user cannot read what its mode forbids, neither here nor there.
    const shown = async (id: string) => {
      await api.sandbox(id).exec({ shell: "chmod 600 mode-0; chmod 700 folder-0; touch -d @1 mode-0 folder-0 ." });
      return describeInside(api.sandbox(id));
    };
    const before = await shown(made.id);
    expect(await shown(copy.id)).toEqual(before);
    for (const bits of [/^d 2750 .* .\/folder-2750$/, /^f 1 2 2750 .* .\/mode-2750$/, /^f 1 3 4755 .* .\/second$/])
      expect(before).toContainEqual(expect.stringMatching(bits));
    const there = await move(made.id, "daytona");
    expect(there.carried).toMatchObject({ loadable: true, memory: "lost" });
    expect(there.carried).toMatchObject({ hard_links: { kept: 4, lost: 0 }, xattrs: { kept: 0, lost: 5 } });
    expect(await shell(there.id, SHOW_HARD_LINKS)).toBe("one\nothers\n");
    expect(await shown(there.id)).toEqual(before);
    expect((await api.sandbox(there.id).exec({ shell: "echo $WORD" })).stdout).toBe("carried\n");
    const back = await move(there.id, "gvisor");
    expect(await shown(back.id)).toEqual(before);
    expect(back.carried).toMatchObject({ hard_links: { kept: 4, lost: 0 }, xattrs: null });
    expect(await shell(back.id, SHOW_HARD_LINKS)).toBe("one\nothers\n");
  });

  test("a name that is not UTF-8 is refused by Daytona, and the sandbox keeps running", async () => {
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
