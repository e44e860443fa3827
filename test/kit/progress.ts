const EVERY_MS = 30_000;

/** Reports every half minute that the work continues, and at its end how long it took. */
export async function withProgress<Result>(
  report: (line: string) => void,
  what: string,
  work: () => Promise<Result>,
  everyMs = EVERY_MS,
): Promise<Result> {
  const startMs = performance.now();
  const seconds = (): string => `${Math.round((performance.now() - startMs) / 1000)} s`;
  const timer = setInterval(() => report(`set-up: still ${what} (${seconds()})`), everyMs);
  try {
    const result = await work();
    report(`set-up: done ${what} (${seconds()})`);
    return result;
  } finally {
    clearInterval(timer);
  }
}
