import type { FakeBackend } from "../../../src/backends/fake/index.ts";
import type { FaultyOperation } from "../../../src/backends/fake/faults.ts";

/** Holds the next call of an operation of the backend: `reached` settles when the call is there. */
export function holdNext(backend: FakeBackend, operation: FaultyOperation) {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  backend.faults.set(operation, {
    get until() {
      reached.resolve();
      return released.promise;
    },
    times: 1,
  });
  return { reached: reached.promise, release: released.resolve };
}
