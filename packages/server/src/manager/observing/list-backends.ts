import type { ObservingContext } from "../room-contexts.ts";

export interface BackendRecord {
  readonly name: string;
  readonly default: boolean;
  readonly ok: boolean;
  readonly summary: string;
  readonly remedy: string | null;
  readonly capabilities: Record<string, string | boolean>;
}

/** What can make sandboxes here, what each can do, and whether it works now. */
export async function listBackends({ options }: ObservingContext): Promise<BackendRecord[]> {
  return Promise.all(
    [...options.backends.values()].map(async (backend) => {
      const { ok, summary, remedy } = await backend.probe();
      return {
        name: backend.name,
        default: backend.name === options.defaultBackend,
        ok,
        summary,
        remedy: remedy ?? null,
        capabilities: { ...backend.capabilities },
      };
    }),
  );
}
