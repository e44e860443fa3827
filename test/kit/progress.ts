const EVERY_MS = 30_000;

/** Says every half minute that something is still under way, and how long it has taken in the end. */
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
