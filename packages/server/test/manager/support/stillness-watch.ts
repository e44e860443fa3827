import type { SandboxHandle } from "../../../src/backends/backend.ts";
import type { FakeBackend } from "../../../src/backends/fake/index.ts";

/** Whether each sandbox is held still, by the calls that the manager made last. */
export function stillnessWatch(): { still: Map<string, boolean>; wrapBackend: (backend: FakeBackend) => FakeBackend } {
  const still = new Map<string, boolean>();
  const watch = (handle: SandboxHandle): SandboxHandle => {
    const freeze = handle.freeze.bind(handle);
    const thaw = handle.thaw.bind(handle);
    handle.freeze = async () => {
      await freeze();
      still.set(handle.sandboxId, true);
    };
    handle.thaw = async () => {
      await thaw();
      still.set(handle.sandboxId, false);
    };
    return handle;
  };
  const wrapBackend = (backend: FakeBackend): FakeBackend =>
    new Proxy(backend, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...parameters: unknown[]) => {
          const result: unknown = Reflect.apply(value, target, parameters);
          return name === "acquire" || name === "acquireFromSnapshot"
            ? (result as Promise<SandboxHandle>).then(watch)
            : result;
        };
      },
    });
  return { still, wrapBackend };
}
