import { defineCommand } from "../define-command.ts";

export const completeCommand = defineCommand({
  local: true,
  arguments: "<line>",
  examples: [
    "sandboxer __complete -- 'sandboxer exec w'",
    "sandboxer __complete -- 'sandboxer snap'",
    "sandboxer __complete -- 'sandboxer create --pro'",
  ],
  details: "Used by the scripts of `sandboxer completion`. Prints one word per line.",
  async run(run) {
    const { wantedAfter } = await import("../completion/candidates.ts");
    const { liveNames } = await import("../completion/live-names.ts");
    const words = run.argument(0).split(/\s+/);
    const last = words.pop() ?? "";
    const wanted = await wantedAfter(words.slice(1), last, run.io);
    const names = [...wanted.words, ...(await liveNames(wanted, last, run.io))];
    const found = [...new Set(names)].filter((name) => name.startsWith(last) && /^[\x21-\x7e]+$/.test(name));
    run.io.stdout(
      found
        .toSorted()
        .map((name) => `${name}\n`)
        .join(""),
    );
  },
});
