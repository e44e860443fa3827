import type { Results } from "./results.ts";

/** Where, when and on what it was measured. */
export function provenance({ machine, engine, date, command, quick }: Results): string[] {
  return [
    `- Machine: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Linux ${machine.kernel}`,
    `- Engine: runsc ${engine.version}, ${engine.platform}; Node ${machine.node}; commit ${machine.commit}`,
    `- ${date.slice(0, 16).replace("T", " ")} UTC, \`${command}\`${quick ? " (a quick look: few rounds)" : ""}`,
    `- Load average of the machine: ${machine.loadAverage.map((load) => load.toFixed(1)).join(", ")} (start, end)`,
  ];
}
