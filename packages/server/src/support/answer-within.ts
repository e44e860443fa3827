import type { Clock } from "./clock.ts";

/** What the work gives; undefined where it takes longer than that. It goes on all the same. */
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
