import { Sandbox, type Sandboxer } from "@sandboxer/client";

export interface Furnished {
  readonly sandbox: Sandbox;
  readonly stored: Sandbox;
}

/** Sandboxes that have something to show on every page: files, processes, snapshots, copies, a paused one. */
export async function furnish(client: Sandboxer): Promise<Furnished> {
  const sandbox = await Sandbox.create({ client, name: "agent-web", labels: { team: "ml", stage: "trial" } });
  await sandbox.files.write("/workspace/notes.md", "# Notes\n\nWhat is kept here goes along.\n");
  await sandbox.files.write("/workspace/src/main.py", "print(6 * 7)\n", { parents: true });
  await sandbox.exec("echo hello from the sandbox");
  await sandbox.exec("echo this one fails >&2; exit 3");
  await sandbox.snapshot({ name: "before-the-trial" });
  await sandbox.exec("echo changed > /workspace/notes.md");
  await sandbox.snapshot({ name: "after-the-trial" });
  const [copy] = await sandbox.fork({ count: 1 });
  await copy?.update({ name: "agent-web-copy" });
  (await sandbox.spawn("while true; do echo tick; sleep 1; done", { detach: true })).detach();
  const stored = await Sandbox.create({ client, name: "asleep", labels: { team: "web" } });
  await stored.checkpoint();
  return { sandbox, stored };
}
