import { testBackend } from "../backends/backend-contract.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { openGvisor } from "./support/open-backend.ts";

describeGvisor("the contract", (engine) => testBackend("gvisor", () => openGvisor(engine)));
