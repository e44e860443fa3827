import { defineConfig } from "vitest/config";
import { LongestFirst } from "./scripts/testing/longest-first.ts";
import { filesWith, UNIT_FILES } from "./scripts/testing/suffixes.ts";

/**
 * A file's suffix decides on its suite (scripts/testing/suffixes.ts). `unit`, `servers`, `hostile` and `crash` need only Node;
 * `agent` a C compiler; `python` Python 3.10; `stores` the servers of test/kit/store-servers; `extensions` and `docker` root and the programs of
 * test/kit/services; `console` a Chromium; `gvisor` root and runsc (see scripts/test.ts).
 */
/** Time limits of waits: a guard against hanging, also on busy machines. */
const patience = { expect: { poll: { timeout: 60_000 } }, testTimeout: 180_000, hookTimeout: 180_000 };

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...patience,
          name: "unit",
          // Some of their time is waiting; each worker loads the sources once.
          maxWorkers: 3,
          // Loading the sources again for each file took half of the processors' time.
          isolate: false,
          ...UNIT_FILES,
        },
      },
      {
        test: {
          ...patience,
          name: "servers",
          maxWorkers: 3,
          isolate: false,
          include: filesWith("server", "hostile"),
        },
      },
      {
        test: {
          // The attacks among the tests of the other projects: `npm run test:hostile`.
          ...patience,
          name: "hostile",
          include: filesWith("hostile"),
          isolate: false,
          maxWorkers: 4,
        },
      },
      {
        test: {
          ...patience,
          name: "crash",
          include: filesWith("crash"),
          // Loading the server's sources once for all files of a worker saves a third of the time.
          isolate: false,
          // Half of their time is waiting; the default is one worker on two processors.
          maxWorkers: 2,
        },
      },
      {
        test: {
          ...patience,
          name: "stores",
          include: filesWith("store"),
          // Loading the sources and the clients of the stores once for all files of a worker saves time.
          isolate: false,
          maxWorkers: 3,
        },
      },
      {
        test: {
          // Not part of `npm test`: `npm run test:long`.
          ...patience,
          name: "long",
          include: filesWith("long"),
        },
      },
      {
        test: { ...patience, name: "python", include: filesWith("python") },
      },
      {
        test: { ...patience, name: "agent", include: filesWith("agent") },
      },
      {
        test: {
          ...patience,
          name: "extensions",
          include: filesWith("extension"),
          globalSetup: ["test/kit/services/extension-services.ts"],
          fileParallelism: false,
          // Loading the server's sources once for all files saves time.
          isolate: false,
        },
      },
      {
        test: {
          ...patience,
          name: "docker",
          include: filesWith("docker"),
          globalSetup: ["packages/server/test/backends/docker/support/docker-service.ts"],
          // Loading the server's sources once for all files of a worker saves time.
          isolate: false,
          maxWorkers: 2,
        },
      },
      {
        test: {
          ...patience,
          name: "console",
          include: filesWith("browser"),
          globalSetup: ["packages/console/test/support/global-setup.ts"],
          // Loading the server's sources once for all files of a worker saves a third of the time.
          isolate: false,
          maxWorkers: 2,
        },
      },
      {
        test: {
          // Not a test of anything: `npm run console-pictures`.
          ...patience,
          name: "console-pictures",
          include: ["packages/console/test/pictures/*.pictures.ts"],
          globalSetup: ["packages/console/test/support/global-setup.ts"],
          fileParallelism: false,
        },
      },
      {
        test: {
          ...patience,
          name: "gvisor",
          include: filesWith("gvisor"),
          // Loading the server's sources once for all files of a worker saves time.
          isolate: false,
          maxWorkers: 3,
        },
      },
    ],
  },
});
