import { randomBytes } from "node:crypto";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { filesIn } from "../../checkpoints/keys/key-lab.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { SandboxClient } from "./processes/support.ts";
import { type ErrorAnswer } from "./support.ts";
import { SnapshotClient } from "./snapshot-client.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The test of encryption on gVisor is skipped: ${missing}`);

async function configWith(folder: string, name: string): Promise<string> {
  const [key, config] = [join(folder, `${name}.key`), join(folder, `${name}.yaml`)];
  await writeFile(key, `${randomBytes(32).toString("base64")}\n`);
  await chmod(key, 0o600);
  await writeFile(config, `encryption_key: store-key\nsecrets:\n  store-key:\n    file: ${key}\n`);
  return config;
}

function client(server: ServerProcess) {
  return new SnapshotClient({ httpUrl: server.url.replace(/^ws/, "http") });
}

describe.skipIf(missing !== undefined)("encryption on gVisor", () => {
  test("memory and files of a sandbox are readable in the store only for servers with the key", async () => {
    const folder = await temporaryFolder();
    const store = await temporaryFolder();
    const config = await configWith(folder, "right");
    const [one, two, other] = [
      await ServerProcess.start({ store, flags: ["--config", config] }),
      await ServerProcess.start({ store, flags: ["--config", config] }),
      await ServerProcess.start({
        store,
        flags: ["--config", await configWith(folder, "wrong")],
      }),
    ];
    const mark = randomBytes(24).toString("hex");
    const box = await SandboxClient.create(client(one).server, { name: "box" });
    await box.exec({ shell: `printf %s ${mark} > /tmp/mark.txt` });
    // In the memory of a program, too.
    await box.spawn({ shell: `MARK=${mark}; while sleep 1; do : $MARK; done` });
    // Incompressible data would be in the store unchanged.
    const random = await box.exec({
      shell: "head -c 2000000 /dev/urandom > /tmp/random; od -An -v -tx1 -j 1000000 -N 32 /tmp/random",
    });
    const piece = Buffer.from(random.stdout.replaceAll(/\s/g, ""), "hex");
    expect(piece).toHaveLength(32);
    await client(one).take(box.id, { name: "base" });
    const saved = await client(one).http.call("POST", `/v1/sandboxes/${box.id}/checkpoint`);
    expect(saved.status).toBe(200);

    const stored = await filesIn(store);
    expect([...stored.keys()].some((path) => path.endsWith(".pack"))).toBe(true);
    const isReadable = (bytes: Buffer): boolean => bytes.includes(mark) || bytes.includes(piece);
    expect([...stored].filter(([, bytes]) => isReadable(bytes)).map(([path]) => path)).toEqual([]);

    const refused = await client(other).http.call<ErrorAnswer>("POST", `/v1/sandboxes/${box.id}/resume`);
    expect([refused.status, refused.body.error.code]).toEqual([403, "wrong_key"]);
    const resumed = await client(two).http.call<SandboxRecord>("POST", `/v1/sandboxes/${box.id}/resume`);
    expect(resumed).toMatchObject({ status: 200, body: { encryption: { held_by: "server", key: "store-key" } } });
    const there = new SandboxClient(client(two).server, box.id);
    // The shell, because there may be no sleep at the moment. The pattern does not find the command that has it.
    const loop = "cat /tmp/mark.txt; pgrep -fc '[w]hile sleep 1'";
    expect(await there.exec({ shell: loop })).toMatchObject({ stdout: `${mark}1\n` });
    const restored = await client(two).restore("base");
    const fork = new SandboxClient(client(two).server, restored.id);
    expect(await fork.exec({ shell: "cat /tmp/mark.txt" })).toMatchObject({ stdout: mark });
  }, 240_000);
});
