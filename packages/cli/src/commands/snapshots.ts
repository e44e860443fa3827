import { Option } from "commander";
import type { DamagedSnapshot, SnapshotInfo } from "@sandboxer/protocol";
import { allItems } from "../api/pages.ts";
import { defineGroup } from "../define-command.ts";
import { integer, pairOption, several } from "../options/parse.ts";
import { defined } from "../options/sandbox.ts";
import { SNAPSHOT_STATES } from "../options/states.ts";
import { painter } from "../output/colour.ts";
import { formatDiff, formatSnapshot, formatSnapshots } from "../output/snapshots.ts";
import { diffTarget } from "../targets/diff.ts";
import { sandboxId } from "../targets/sandbox.ts";
import { findSnapshot, snapshotId } from "../targets/snapshot.ts";
import type { Run } from "../run.ts";

export const snapshotsCommand = defineGroup(
  [
    "sandboxer snapshots list",
    "sandboxer snapshots get before-upgrade",
    "sandboxer snapshots diff before-upgrade after",
  ],
  {
    list: {
      summary: "List snapshots, newest first.",
      aliases: ["ls"],
      examples: [
        "sandboxer snapshots list",
        "sandboxer snapshots list --sandbox web --mode full",
        "sandboxer snapshots list --quiet --label temporary",
      ],
      options: (command) =>
        command
          .option("-s, --sandbox <SANDBOX>", "only of this sandbox")
          .option("-n, --name <NAME>", "only with this name")
          .addOption(
            new Option("-m, --mode <MODE>", "only in this mode").choices([
              "full",
              "filesystem",
              "workspace",
              "metadata",
            ]),
          )
          .addOption(new Option("--state <STATE>", "only in this state").choices(SNAPSHOT_STATES))
          .addOption(new Option("-l, --label <KEY[=VALUE]>", "only with this label").argParser(several))
          .addOption(new Option("--limit <N>", "maximum number to list").argParser(integer(1, 1_000_000)))
          .option("-q, --quiet", "print only full ids, one per line"),
      async run(run) {
        const client = await run.client();
        const sandbox = run.text("sandbox");
        const filters = defined({
          sandbox_id: sandbox === undefined ? undefined : await sandboxId(client, sandbox),
          name: run.text("name"),
          mode: run.text("mode"),
          state: run.text("state"),
          label: run.value<string[]>("label"),
        });
        const damaged: DamagedSnapshot[] = [];
        // Servers of earlier releases do not report any.
        const takeDamaged = (page: { readonly damaged?: readonly DamagedSnapshot[] }): void =>
          void damaged.push(...(page.damaged ?? []));
        const snapshots = await allItems(client, "listSnapshots", filters, run.number("limit"), takeDamaged);
        run.print({ items: snapshots, damaged }, ({ items }) =>
          run.flag("quiet") ? items.map(({ id }) => `${id}\n`).join("") : formatSnapshots(items, painter(run.io)),
        );
        for (const { message, next_step } of damaged) run.say(`${message} ${next_step}`);
        if (snapshots.length + damaged.length === 0) run.say("No snapshots found. Take one with `sandboxer snapshot`.");
      },
    },
    get: {
      summary: "Show a snapshot.",
      arguments: "<snapshot>",
      examples: [
        "sandboxer snapshots get before-upgrade",
        "sandboxer snapshots get 3f2a9c01 --verify",
        "sandboxer snapshots get before-upgrade --json | jq .size_bytes",
      ],
      options: (command) => command.option("--verify", "also check its data"),
      async run(run) {
        const client = await run.client();
        const id = await snapshotId(client, run.argument(0));
        const query = run.flag("verify") ? { verify: true } : {};
        run.print(await client.call("getSnapshot", { params: { id }, query }), formatSnapshot);
      },
    },
    rm: {
      summary: "Delete snapshots and their data. Fails while a live sandbox depends on one.",
      aliases: ["delete"],
      arguments: "<snapshot...>",
      examples: [
        "sandboxer snapshots rm before-upgrade",
        "sandboxer snapshots rm 3f2a9c01 77aa01bc",
        "sandboxer snapshots list -q --label temporary | xargs -r sandboxer snapshots rm",
      ],
      async run(run) {
        const client = await run.client();
        const removed: string[] = [];
        for (const given of run.rest(0)) removed.push(await snapshotId(client, given));
        for (const id of removed) {
          await client.call("deleteSnapshot", { params: { id } });
          if (!run.json) run.io.stdout(`${id}\n`);
        }
        if (run.json) run.print({ removed }, () => "");
      },
    },
    name: {
      summary: "Rename a snapshot, remove its name, or add labels.",
      arguments: "<snapshot> [name]",
      examples: [
        "sandboxer snapshots name 3f2a9c01 before-upgrade",
        "sandboxer snapshots name before-upgrade --none",
        "sandboxer snapshots name before-upgrade --label release=3",
      ],
      options: (command) =>
        command.option("--none", "remove its name").addOption(pairOption("-l, --label <KEY=VALUE>", "add a label")),
      async run(run) {
        const client = await run.client();
        const { id, labels } = await findSnapshot(client, run.argument(0));
        const added = run.value<Record<string, string>>("label");
        const body = defined({
          name: run.flag("none") ? null : run.optionalArgument(1),
          labels: added === undefined ? undefined : { ...labels, ...added },
        });
        const updated = await client.call("updateSnapshot", { params: { id }, body });
        run.print(updated, (snapshot) => `${snapshot.id}\n`);
      },
    },
    pin: {
      summary: "Protect snapshots from deletion and retention until they are unpinned.",
      arguments: "<snapshot...>",
      examples: [
        "sandboxer snapshots pin before-upgrade",
        "sandboxer snapshots pin 3f2a9c01 77aa01bc",
        "sandboxer snapshots list -q --label release | xargs -r sandboxer snapshots pin",
      ],
      run: async (run) => await setPinned(run, true),
    },
    unpin: {
      summary: "Unpin snapshots, so that they can be deleted.",
      arguments: "<snapshot...>",
      examples: [
        "sandboxer snapshots unpin before-upgrade",
        "sandboxer snapshots unpin 3f2a9c01 77aa01bc",
        "sandboxer snapshots unpin before-upgrade && sandboxer snapshots rm before-upgrade",
      ],
      run: async (run) => await setPinned(run, false),
    },
    diff: {
      summary: "List the files that differ between two snapshots, or between a snapshot and a sandbox.",
      arguments: "<snapshot> <other>",
      details: "Lines begin with A (added), M (changed) or D (removed). Write a live sandbox as `sandbox:NAME`.",
      examples: [
        "sandboxer snapshots diff before-upgrade after-upgrade",
        "sandboxer snapshots diff before-upgrade sandbox:web",
        "sandboxer snapshots diff a b --json | jq -r '.changes[].path'",
      ],
      options: (command) =>
        command.addOption(
          new Option("--limit <N>", "maximum number to list").argParser(integer(1, 100_000)).default(1000),
        ),
      async run(run) {
        const client = await run.client();
        const id = await snapshotId(client, run.argument(0));
        const to = await diffTarget(client, run.argument(1));
        const query = { to, limit: run.number("limit") ?? 1000 };
        const diff = await client.call("diffSnapshots", { params: { id }, query });
        run.print(diff, () => formatDiff(diff, painter(run.io)));
        run.say(
          `${diff.added} added, ${diff.changed} changed, ${diff.removed} removed${diff.truncated ? "; list truncated, raise --limit" : ""}.`,
        );
      },
    },
  },
);

async function setPinned(run: Run, pinned: boolean): Promise<void> {
  const client = await run.client();
  const ids: string[] = [];
  for (const given of run.rest(0)) ids.push(await snapshotId(client, given));
  const items: SnapshotInfo[] = [];
  for (const id of ids) items.push(await client.call("updateSnapshot", { params: { id }, body: { pinned } }));
  run.print({ items }, () => ids.map((id) => `${id}\n`).join(""));
}
