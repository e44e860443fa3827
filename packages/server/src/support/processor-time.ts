import { cpus } from "node:os";

/** How much of this machine's processors nobody has used since the last look, from 0 to 1. */
export class IdleProcessors {
  #last = timesOf();

  share(): number {
    const [before, now] = [this.#last, timesOf()];
    this.#last = now;
    const all = now.all - before.all;
    return all === 0 ? 0 : (now.idle - before.idle) / all;
  }
}

function timesOf(): { readonly idle: number; readonly all: number } {
  let [idle, all] = [0, 0];
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.idle + times.user + times.sys + times.nice + times.irq;
  }
  return { idle, all };
}
