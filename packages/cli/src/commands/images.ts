import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { counted } from "../copy/counted.ts";
import { defineGroup } from "../define-command.ts";
import { operate } from "../operate.ts";
import { ProgressLine } from "../output/progress.ts";
import { formatImages, formatPulled, formatRemoved } from "../output/images.ts";

export const imagesCommand = defineGroup(
  ["sandboxer images ls", "sandboxer images pull python:3.12-slim", "sandboxer images prune"],
  {
    ls: {
      summary: "List the container images on the server's machine, most recently used first.",
      aliases: ["list"],
      examples: [
        "sandboxer images ls",
        "sandboxer images ls --quiet",
        "sandboxer images ls --json | jq '.items[].digest'",
      ],
      options: (command) => command.option("-q, --quiet", "print only digests, one per line"),
      async run(run) {
        const { items } = await (await run.client()).call("listImages", {});
        run.print({ items }, () =>
          run.flag("quiet") ? items.map(({ digest }) => `${digest}\n`).join("") : formatImages(items),
        );
        if (items.length === 0) run.say("No images. Pull one with `sandboxer images pull python:3.12-slim`.");
      },
    },
    pull: {
      summary: "Pull an image from its registry, or update the one on the server.",
      arguments: "<image>",
      details: "A sandbox that is created with a missing image pulls it by itself.",
      examples: [
        "sandboxer images pull python:3.12-slim",
        "sandboxer images pull registry.example/team/tool:1",
        "sandboxer images pull python:3.12-slim --json | jq -r .digest",
      ],
      async run(run) {
        const image = await operate(run, "pullImage", { body: { image: run.argument(0) } });
        run.print(image, formatPulled);
      },
    },
    import: {
      summary: "Import an image from an archive that `docker save`, buildah or skopeo wrote.",
      arguments: "<file>",
      details: "`-` reads the archive from standard input.",
      examples: [
        "sandboxer images import tool.tar",
        "sandboxer images import tool.tar --name team/tool:1",
        "docker save team/tool:1 | sandboxer images import -",
      ],
      options: (command) => command.option("-n, --name <NAME>", "name of the image (default: the one in the archive)"),
      async run(run) {
        const [path, name] = [run.argument(0), run.text("name")];
        const query = name === undefined ? {} : { name };
        const size = path === "-" ? null : await sizeOf(path);
        const line = new ProgressLine(run.io, run.json);
        const source = path === "-" ? run.io.stdin.bytes() : createReadStream(path);
        try {
          const body = counted(source, line, "import", size);
          run.print(await (await run.client()).call("importImage", { query, body }), formatPulled);
        } finally {
          line.end();
        }
      },
    },
    rm: {
      summary: "Delete images. Fails while a running sandbox uses one.",
      aliases: ["delete"],
      arguments: "<image...>",
      details: "Deletes the name, and the image once it has no name. A digest deletes the image with all its names.",
      examples: [
        "sandboxer images rm python:3.12-slim",
        "sandboxer images rm 3f2a9c01b2d4",
        "sandboxer images ls -q | xargs -r sandboxer images rm",
      ],
      async run(run) {
        const client = await run.client();
        let [removed, freed_bytes] = [[] as string[], 0];
        for (const image of run.rest(0)) {
          const done = await client.call("deleteImage", { params: { image } });
          removed = [...removed, ...done.removed];
          freed_bytes += done.freed_bytes;
        }
        run.print({ removed, freed_bytes }, formatRemoved);
      },
    },
    prune: {
      summary: "Delete every image that no running sandbox uses.",
      details: "Paused sandboxes pull their image again when they are resumed.",
      examples: [
        "sandboxer images prune",
        "sandboxer images prune --json",
        "sandboxer images prune && sandboxer images ls",
      ],
      async run(run) {
        run.print(await (await run.client()).call("pruneImages", {}), formatRemoved);
      },
    },
  },
);

async function sizeOf(path: string): Promise<number> {
  const info = await stat(path).catch(() => undefined);
  if (info?.isFile() === true) return info.size;
  throw new SandboxerError("bad_request", `There is no file ${path}.`, { hint: "Give the path of an archive, or -." });
}
