import type { ResponseOf, Routes } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import type { BackendsContext } from "../room-contexts.ts";

/** The pool's numbers in the form of the API. */
export type WarmPoolRecord = NonNullable<ResponseOf<Routes["serverInfo"]>["warm_pool"]>;

/** The pool of the default backend; undefined if it has none. */
export function warmPoolRecord({ options }: BackendsContext): WarmPoolRecord | undefined {
  const figures = options.backends.get(options.defaultBackend)?.warm;
  if (figures === undefined) return undefined;
  const { handedOut, ...others } = figures;
  return { ...others, handed_out: handedOut };
}

/** The server shuts down: unused sandboxes are ended, and no more are started. */
export async function stopPreparing(context: ManagerContext): Promise<void> {
  const backends = [...context.options.backends.values()];
  const stops = backends.map(async (backend) => backend.stopPreparing?.());
  await context.reported("end of unused sandboxes of the warm pool", Promise.all(stops));
}
