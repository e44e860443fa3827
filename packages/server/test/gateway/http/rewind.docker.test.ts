import { expect, onTestFinished, test } from "vitest";
import { describeDocker } from "../../backends/docker/support/describe-docker.ts";
import { DockerLab } from "../../backends/docker/support/docker-lab.ts";
import { openContractBackend } from "../../backends/docker/support/open-docker.ts";
import { promoteFork, rewindTwice } from "./rewind-kept.ts";

describeDocker("rewind", (service) => {
  const lab = new DockerLab(service);

  test("puts a container's files back in place, and leaves one container", async () => {
    const { backend, close } = await openContractBackend(service);
    onTestFinished(close);
    await rewindTwice(backend, async (id) => {
      const labels = await lab.docker("ps", "-a", "--format", '{{.Label "sandboxer.sandbox-id"}}');
      expect(labels.split("\n").filter((label) => label.startsWith(id))).toEqual([`${id}-2`]);
    });
  });

  test("gives a container the files of its fork, and leaves no other", async () => {
    const { backend, close } = await openContractBackend(service);
    onTestFinished(close);
    await promoteFork(backend, async (id, winner) => {
      const labels = await lab.docker("ps", "-a", "--format", '{{.Label "sandboxer.sandbox-id"}}');
      const left = labels.split("\n").filter((label) => label.startsWith(id) || label.startsWith(winner));
      expect(left).toEqual([`${id}-1`]);
    });
  });
});
