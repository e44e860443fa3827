import type { ResponseOf, Routes } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import type { BackendsContext } from "../room-contexts.ts";

/** As clients are told. */
export type WarmPoolRecord = NonNullable<ResponseOf<Routes["serverInfo"]>["warm_pool"]>;

/** Of the default backend; undefined: it never starts a sandbox ahead of the need. */
export function warmPoolRecord({ options }: BackendsContext): WarmPoolRecord | undefined {
  const figures = options.backends.get(options.defaultBackend)?.warm;
  if (figures === undefined) return undefined;
  const { handedOut, ...others } = figures;
  return { ...others, handed_out: handedOut };
}

/** The server shuts down: what nobody has is ended, and nothing more is started for nobody. */
export async function stopPreparing(context: ManagerContext): Promise<void> {
  const backends = [...context.options.backends.values()];
  const stops = backends.map(async (backend) => backend.stopPreparing?.());
  await context.reported("end of unused sandboxes of the warm pool", Promise.all(stops));
}
