import { Sandbox } from "@sandboxer/client";
import type { Lab } from "../lab.ts";
import type { Contest } from "../result.ts";
import { timed } from "../rounds.ts";
import { summarize } from "../statistics.ts";

/** A cell that prints one line, and a fresh `python3 -c` that does, in the same sandbox over the same API. */
export async function measureCell(lab: Lab): Promise<{ contests: Contest[] }> {
  lab.progress("Cells of the code interpreter");
  const sandbox = await Sandbox.create({ url: lab.server.url.replace(/^ws/, "http") });
  const python = sandbox.interpreter();
  const code = "print('one line')";
  const ways = {
    cell: () => python.run(code),
    fresh: async () => sandbox.exec(["python3", "-c", code]),
  };
  const values: Record<keyof typeof ways, number[]> = { cell: [], fresh: [] };
  const rounds = lab.quick ? 10 : 50;
  for (let round = 0; round <= rounds; round++) {
    for (const name of Object.keys(ways) as (keyof typeof ways)[]) {
      const elapsedMs = await timed(ways[name]);
      if (round > 0) values[name].push(elapsedMs);
    }
  }
  await sandbox.destroy();
  return {
    contests: [
      {
        id: "cell-python",
        title: "Code interpreter: a cell that prints one line",
        unit: "ms",
        sides: [
          { name: "cell", what: "`interpreter().run()` in a waiting context", summary: summarize(values.cell) },
          { name: "fresh process", what: "`exec` of `python3 -c`", summary: summarize(values.fresh) },
        ],
        aim: { bound: "at most", ratio: 1 / 10 },
      },
    ],
  };
}
