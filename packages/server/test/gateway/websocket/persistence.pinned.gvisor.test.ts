import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { REMOVAL } from "../../../../../test/kit/temporary-folder.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of saved sandboxes on gVisor are skipped: ${missing}`);

const DURABLE = { enable_checkpoint: true, env: { FROM_CREATION: "kept" } };

/**
 * A Python interpreter in the background that answers questions through named pipes, so that its variables can be asked
 * for. It waits for a question while it is saved, and takes no processor for that.
 */
const INTERPRETER = `
import os, subprocess, sys
os.mkfifo('/tmp/question'); os.mkfifo('/tmp/answer')
subprocess.Popen([sys.executable, "-u", "-c", """
import os
os.chdir('/tmp'); os.environ['FROM_INSIDE'] = 'kept too'
opened = open('/tmp/opened', 'w+'); opened.write('first line\\\\n'); opened.flush()
answers = 0
while True:
    with open('/tmp/question') as asked: question = asked.read()
    answers += 1
    opened.write(question); opened.flush()
    seen = '|'.join([str(answers), os.getcwd(), os.environ['FROM_INSIDE'], os.environ['FROM_CREATION'], str(opened.tell())])
    with open('/tmp/answer', 'w') as told: told.write(seen + '\\\\n')
"""], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
`;
const ASK = "echo another > /tmp/question; read -r answer < /tmp/answer; echo $answer";
const answer = (round: number): string => `out:${round}|/tmp|kept too|kept|${11 + 8 * round}\n`;

describe.skipIf(missing !== undefined)("on gVisor", () => {
  // For the tests that do nothing to it.
  let folder: string;
  let shared: Promise<ServerProcess> | undefined;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "sandboxer-test-"));
  });
  const sharedServer = (): Promise<ServerProcess> =>
    (shared ??= ServerProcess.start({
      dataHome: join(folder, "data"),
      store: join(folder, "store"),
      until: "stopped",
    }));
  afterAll(async () => {
    await (await shared)?.stop();
    await rm(folder, REMOVAL);
  });

  test("variables, open files, environment and folder survive six rounds, between which servers are killed", async () => {
    const store = await temporaryFolder();
    let server = await ServerProcess.start({ store });
    const { client, id } = await server.create(DURABLE);
    await client.run("python", INTERPRETER).until("EXECUTION_DONE");
    expect(await client.run("bash", ASK).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      answer(1),
      "EXECUTION_DONE",
    ]);
    expect(await client.send({ action: "checkpoint" }).untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
    // A chain of differences has four links: the last rounds begin another.
    for (let round = 2; round <= 7; round += 1) {
      // Twice on a fresh process; the others, on the same one, are quicker.
      if (round % 4 === 2) {
        await server.killHard();
        server = await ServerProcess.start({ store });
      }
      const again = server.attach(id);
      expect(await again.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
      expect(await again.run("bash", ASK).until("EXECUTION_DONE")).toEqual([
        "EXECUTION_RUNNING",
        answer(round),
        "EXECUTION_DONE",
      ]);
      expect(await again.send({ action: "checkpoint" }).untilClosed()).toEqual(["CHECKPOINTING", "CHECKPOINTED", 1000]);
    }
  });

  test("a drain saves executions, and their output continues elsewhere to its end", async () => {
    const store = await temporaryFolder();
    const first = await ServerProcess.start({ store });
    const { client, id } = await first.create(DURABLE);
    const lines = "import sys, time\nfor i in range(1, 101):\n  print(i, flush=True); time.sleep(0.03)\nsys.exit(7)";
    await client.run("python", lines).until("out:");
    expect(await first.stop()).toBe(0);
    expect((await client.untilClosed()).filter((word) => !String(word).startsWith("out:"))).toEqual([
      "CHECKPOINTING",
      "CHECKPOINTED",
      1012,
    ]);
    const second = await ServerProcess.start({ store });
    const again = second.attach(id).send({ action: "reconnect" });
    const came = await again.until("EXECUTION_DONE");
    expect(came.filter((word) => !word.startsWith("out:"))).toEqual([
      "RESTORING",
      "RUNNING",
      "EXECUTION_RUNNING",
      "EXECUTION_DONE",
    ]);
    expect(client.output + again.output).toBe(Array.from({ length: 100 }, (_, index) => `${index + 1}\n`).join(""));
    expect(again.events.at(-1)).toMatchObject({ exit_code: 7 });
  });

  test("a damaged image is named, and the previous one works", async () => {
    const server = await sharedServer();
    const { client, id } = await server.create(DURABLE);
    const checkpoints = join(folder, "store", id, "checkpoints");
    await client.run("bash", "echo older > file").until("EXECUTION_DONE");
    await client.send({ action: "checkpoint" }).untilClosed();
    const older = (await readFile(join(checkpoints, "latest"), "utf8")).trim();
    const second = server.attach(id);
    await second.until("RUNNING");
    await second.run("bash", "echo newer > file").until("EXECUTION_DONE");
    await second.send({ action: "checkpoint" }).untilClosed();
    const newest = (await readFile(join(checkpoints, "latest"), "utf8")).trim();
    const bytes = await readFile(join(checkpoints, newest));
    // Where it says what it is made of. Its blocks are on this machine still, and would be taken from there.
    const inEnvelope = bytes.length - 100;
    bytes[inEnvelope] = (bytes[inEnvelope] ?? 0) ^ 1;
    await writeFile(join(checkpoints, newest), bytes);
    expect(await server.attach(id).untilClosed()).toEqual([
      "RESTORING",
      "RESTORE_ERROR",
      expect.stringContaining(newest),
      4000,
    ]);
    const back = server.attach(id, `?checkpoint=${older}`);
    expect(await back.until("RUNNING")).toEqual(["RESTORING", "RUNNING"]);
    expect(await back.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:older\n");
  });

  test("new sandboxes can start from a filesystem snapshot", async () => {
    const server = await sharedServer();
    const { client } = await server.create();
    await client
      .run("bash", "mkdir -p lib && echo shared > lib/file && chmod 755 lib/file && ln -s lib/file link")
      .until("EXECUTION_DONE");
    expect(
      await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED"),
    ).toEqual(["FILESYSTEM_SNAPSHOT_CREATING", "FILESYSTEM_SNAPSHOT_CREATED"]);
    expect(await client.run("bash", "echo changed > lib/file; cat link").until("EXECUTION_DONE")).toContain(
      "out:changed\n",
    );
    const { client: fresh } = await server.create({ filesystem_snapshot_name: "base" });
    expect(await fresh.run("bash", "cat link; stat -c %a lib/file").until("EXECUTION_DONE")).toContain(
      "out:shared\n755\n",
    );
  });
});
