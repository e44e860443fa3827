import { testBackend } from "../backends/backend-contract.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { openGvisor } from "./support/open-backend.ts";

/** Asleep as often as they can be: it must not show. */
const SLEEP_AFTER_MS = 1;

describeGvisor("the contract", (engine) =>
  testBackend("gvisor", () => openGvisor(engine, { sleepAfterMs: SLEEP_AFTER_MS })),
);
