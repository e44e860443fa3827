import { testBackend } from "../../backend-contract.ts";
import { describeGvisor } from "../support/describe-gvisor.ts";
import { openGvisor } from "../support/open-backend.ts";
import { warmOptions } from "../support/warm-options.ts";

describeGvisor("the contract, with sandboxes that were started ahead", (engine) =>
  testBackend("gvisor", () => openGvisor(engine, { warm: warmOptions() })),
);
