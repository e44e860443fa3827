import { FakeBackend } from "../../src/backends/fake/index.ts";
import { testBackend } from "./backend-contract.ts";

testBackend("fake", () => {
  const backend = new FakeBackend();
  return Promise.resolve({ backend, close: () => backend.close() });
});
