import type { Clock } from "./clock.ts";

/** The result of the work; undefined if it takes longer than that. The work continues anyway. */
export async function answerWithin<Result>(
  clock: Pick<Clock, "sleep">,
  ms: number,
  work: Promise<Result>,
): Promise<Result | undefined> {
  const answered = new AbortController();
  const late = clock.sleep(ms, answered.signal).then(
    () => undefined,
    () => undefined,
  );
  return await Promise.race([work, late]).finally(() => answered.abort());
}
