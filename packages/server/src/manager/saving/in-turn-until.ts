import type { SavingContext } from "../room-contexts.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** Holds the sandbox's queue until the work releases it: writing a captured state delays nobody. */
export async function inTurnUntil<Result>(
  context: SavingContext,
  sandbox: LiveSandbox,
  work: (release: () => void) => Promise<Result>,
): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  await sandbox.queue.run(async () => {
    const released = Promise.withResolvers<void>();
    work(released.resolve).then(resolve, reject);
    context.untilEnded(promise);
    await Promise.race([released.promise, promise.catch(() => {})]);
  });
  return await promise;
}
