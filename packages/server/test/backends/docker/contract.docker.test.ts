import { testBackend } from "../backend-contract.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { openContractBackend } from "./support/open-docker.ts";

describeDocker("the contract", (service) => {
  testBackend("docker", () => openContractBackend(service));
});
