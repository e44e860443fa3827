import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import type { CaptureMark } from "./unsaved-changes.ts";

/** A sandbox that does not say what lives inside in this time counts as one in which something does. */
const ANSWER_MS = 5_000;

/** What is known of a sandbox that is about to be captured. */
export async function markBeforeCapture(context: ManagerContext, sandbox: LiveSandbox): Promise<CaptureMark> {
  const mark = sandbox.unsaved.mark(context.nowMs);
  return { ...mark, quiet: await isQuiet(context, sandbox) };
}

/** Whether nothing lives inside: then it stays as it is until somebody uses it. Only worth a question with a promise. */
async function isQuiet({ options }: ManagerContext, sandbox: LiveSandbox): Promise<boolean> {
  if (sandbox.facts.about.max_loss === null) return false;
  if (sandbox.held || sandbox.processes.running) return false;
  const timeout = new AbortController();
  const late = options.clock.sleep(ANSWER_MS, timeout.signal).then(
    () => undefined,
    () => undefined,
  );
  try {
    const table = await Promise.race([sandbox.handle.processTable(), late]);
    return table?.length === 0;
  } catch {
    return false;
  } finally {
    timeout.abort();
  }
}
