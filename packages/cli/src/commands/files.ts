import { defineGroup } from "../define-command.ts";
import { formatFiles } from "../output/files.ts";
import type { Run } from "../run.ts";
import { requireRemotePath } from "../targets/remote-path.ts";
import { sandboxId } from "../targets/sandbox.ts";

/** The id of the sandbox, and the path in it. */
async function target(run: Run, given: string): Promise<{ id: string; path: string }> {
  const { sandbox, path } = requireRemotePath(given);
  return { id: await sandboxId(await run.client(), sandbox), path };
}

export const filesCommand = defineGroup(
  ["sandboxer files ls web:/tmp", "sandboxer files cat web:/etc/hostname", "sandboxer files rm -r web:/tmp/build"],
  {
    ls: {
      summary: "List a folder.",
      aliases: ["list"],
      arguments: "<path>",
      examples: [
        "sandboxer files ls web:/tmp",
        "sandboxer files ls web:/",
        "sandboxer files ls web:/tmp --json | jq -r '.items[].name'",
      ],
      async run(run) {
        const { id, path } = await target(run, run.argument(0));
        const files = await (await run.client()).call("listFiles", { params: { id }, query: { path } });
        run.print(files, ({ items }) => formatFiles(items));
      },
    },
    stat: {
      summary: "Show the type, size, mode and times of a path.",
      arguments: "<path>",
      examples: [
        "sandboxer files stat web:/etc/passwd",
        "sandboxer files stat web:/tmp",
        "sandboxer files stat web:/etc/passwd --json | jq .size_bytes",
      ],
      async run(run) {
        const { id, path } = await target(run, run.argument(0));
        const entry = await (await run.client()).call("statFile", { params: { id }, query: { path } });
        run.print(entry, (file) => formatFiles([file]));
      },
    },
    cat: {
      summary: "Print a file.",
      arguments: "<path>",
      examples: [
        "sandboxer files cat web:/etc/hostname",
        "sandboxer files cat web:/srv/data.bin > data.bin",
        "sandboxer files cat web:/var/log/app.log | tail -n 20",
      ],
      async run(run) {
        const { id, path } = await target(run, run.argument(0));
        const client = await run.client();
        let written = 0;
        await client.read("readFile", { params: { id }, query: { path, offset: 0 } }, {}, async (response) => {
          let position = 0;
          for await (const bytes of response.body ?? []) {
            // Output from before a lost connection is not printed again.
            const fresh = bytes.subarray(Math.max(0, written - position));
            position += bytes.length;
            if (fresh.length > 0) await run.io.writeBytes("stdout", fresh);
            written = Math.max(written, position);
          }
        });
      },
    },
    rm: {
      summary: "Delete a file, or a folder with -r.",
      arguments: "<path...>",
      examples: [
        "sandboxer files rm web:/tmp/notes.txt",
        "sandboxer files rm -r web:/tmp/build",
        "sandboxer files rm web:/tmp/a web:/tmp/b",
      ],
      options: (command) => command.option("-r, --recursive", "delete folders and their contents"),
      async run(run) {
        const recursive = run.flag("recursive");
        for (const given of run.rest(0)) {
          const { id, path } = await target(run, given);
          await (await run.client()).call("removeFile", { params: { id }, query: { path, recursive } });
        }
        run.print({ removed: run.rest(0) }, () => "");
      },
    },
    mkdir: {
      summary: "Create a folder and its parents.",
      arguments: "<path>",
      examples: [
        "sandboxer files mkdir web:/srv/app",
        "sandboxer files mkdir web:/srv/app/static",
        "sandboxer files mkdir --no-parents web:/srv/app",
      ],
      options: (command) => command.option("--no-parents", "fail if the parent folder is missing"),
      async run(run) {
        const { id, path } = await target(run, run.argument(0));
        const parents = run.value<boolean>("parents") !== false;
        await (await run.client()).call("makeFolder", { params: { id }, body: { path, parents } });
        run.print({ path }, () => "");
      },
    },
    mv: {
      summary: "Rename or move a file or folder within a sandbox.",
      arguments: "<path> <to>",
      examples: [
        "sandboxer files mv web:/tmp/a /tmp/b",
        "sandboxer files mv web:/srv/new /srv/app",
        "sandboxer files mv web:/tmp/a.txt /srv/a.txt",
      ],
      async run(run) {
        const { id, path: from } = await target(run, run.argument(0));
        const to = run.argument(1);
        await (await run.client()).call("renameFile", { params: { id }, body: { from, to } });
        run.print({ from, to }, () => "");
      },
    },
  },
);
