import { testBackend } from "../backend-contract.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { openGvisor } from "./support/open-backend.ts";

/** They doze as often as possible: nobody must notice. */
const DOZE_AFTER_MS = 1;

describeGvisor("the contract", (engine) =>
  testBackend("gvisor", () => openGvisor(engine, { dozeAfterMs: DOZE_AFTER_MS })),
);
