import { expect, test } from "vitest";
import { Sandbox } from "../../../../client/src/index.ts";
import { ServerProcess } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

/** Cells that set a variable, and cells that show it, in the languages that have no test of their own below. */
const OTHERS = [
  { language: "javascript", set: "let kept = 'in node'", get: "kept", shown: "'in node'" },
  { language: "bash", set: "kept='in bash'", get: "echo $kept", shown: "in bash" },
] as const;

test("contexts keep their variables through a pause, a fork, a handoff, and kill -9 of their server", async () => {
  const store = await temporaryFolder();
  const serve = (): Promise<ServerProcess> => ServerProcess.start({ store, flags: ["--lease-ttl", "5s"] });
  const [elsewhere, first] = [await serve(), await serve()];
  const url = first.url.replace(/^ws/, "http");
  const sandbox = await Sandbox.create({ url: elsewhere.url.replace(/^ws/, "http"), maxLoss: "1s" });
  const python = sandbox.interpreter();
  for (const { language, set } of OTHERS) expect(await python.run(set, { language })).toMatchObject({ status: "ok" });
  const expectOthers = async (interpreter: typeof python): Promise<void> => {
    for (const { language, get, shown } of OTHERS) {
      const { text, stdout } = await interpreter.run(get, { language });
      expect(text ?? stdout.trim()).toBe(shown);
    }
  };
  await python.run("import os\nx = 41\nopen('file', 'w').write('data')");
  expect((await python.run("print('one line')\nx + 1")).text).toBe("42");
  const { id: second } = await python.createContext();
  await python.run("x = 'apart'", { context: second });

  await sandbox.checkpoint();
  expect((await python.run("x")).text).toBe("41");
  expect((await python.run("x", { context: second })).text).toBe("'apart'");
  await expectOthers(python);

  const [fork] = await sandbox.fork();
  await python.run("x = 'original'");
  expect((await fork?.interpreter().run("x"))?.text).toBe("41");
  expect((await fork?.interpreter().run("x", { context: second }))?.text).toBe("'apart'");
  if (fork !== undefined) await expectOthers(fork.interpreter());
  await fork?.destroy();

  await sandbox.handoff(url);
  expect((await python.run("x")).text).toBe("'original'");
  expect((await python.run("x", { context: second })).text).toBe("'apart'");
  await expectOthers(python);

  await python.run("import time\ncount = 0");
  const ticking = python.stream("while True:\n  count += 1\n  time.sleep(0.01)", { onDisconnect: "keep" });
  expect((await ticking.next()).value).toMatchObject({ type: "started" });
  // The first one may have been captured before the cell began; the second one has it.
  for (const _ of [1, 2]) {
    const before = (await sandbox.refresh()).checkpoint;
    await expect.poll(async () => (await sandbox.refresh()).checkpoint).not.toEqual(before);
  }
  await first.killHard();
  await ticking.return();

  const next = await serve();
  const again = await Sandbox.attach(sandbox.id, { url: next.url.replace(/^ws/, "http") });
  const survivor = again.interpreter();
  await expect
    .poll(async () => Object.fromEntries((await survivor.contexts()).map(({ id, state }) => [id, state])))
    .toEqual({ python: "busy", [second]: "idle", javascript: "idle", bash: "idle" });
  await survivor.interrupt();
  expect(Number((await survivor.run("count")).text)).toBeGreaterThan(0);
  expect((await survivor.run("x")).text).toBe("'original'");
  expect((await survivor.run("x", { context: second })).text).toBe("'apart'");
  await expectOthers(survivor);
  await again.destroy();
});
