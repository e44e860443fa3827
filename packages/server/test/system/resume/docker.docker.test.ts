import { describeDocker } from "../../backends/docker/support/describe-docker.ts";
import { HOST_IMAGE_PATH } from "../../../../../test/kit/services/host-image.ts";
import { resumeAcrossProcesses } from "./support/resume-contract.ts";
import { ResumeLab } from "./support/resume-lab.ts";

describeDocker("resuming across processes", (service) => {
  const place = ["--docker-host", service.host, "--docker-image", service.image, "--docker-mounts", "/usr"];
  const runFlags = ["--env", `PATH=${HOST_IMAGE_PATH}`, "--input", "mounts=/usr:/usr:ro"];
  resumeAcrossProcesses(() => ResumeLab.open({ flags: ["--backend", "docker", ...place], runFlags }), {
    keepsUnsaved: true,
  });
});
