import { defineConfig } from "vitest/config";
import { LongestFirst } from "./scripts/testing/longest-first.ts";

/**
 * `unit`, `servers`, `hostile` (the attacks of the others alone) and `crash` (servers that are killed at every step) need nothing but Node; `agent` a C compiler; `stores` the servers of packages/server/test/store/servers;
 * `extensions` and `docker` root and the programs of packages/server/test/services; `console` a chromium;
 * `gvisor` root and runsc (see scripts/test.ts).
 */
/** How long something that is awaited may take: a guard against hanging, on machines that have much else to do. */
const patience = { expect: { poll: { timeout: 60_000 } }, testTimeout: 180_000, hookTimeout: 180_000 };

/** What has a suite of its own, because it needs more than Node or takes long. */
const ELSEWHERE = [
  "**/*.gvisor.test.ts",
  "**/*.docker.test.ts",
  "**/*.extension.test.ts",
  "**/*.browser.test.ts",
  "packages/server/test/store/bucket-*.test.ts",
  "packages/server/test/crash/**",
];

/** Tests with whole servers, with other processes, with megabytes, or with searches: minutes. The others take seconds. */
const SERVERS = [
  "packages/cli/test/**/*.test.ts",
  "packages/client/test/{sandbox,process}/**/*.test.ts",
  "packages/client/test/{docs,examples,imports}.test.ts",
  "packages/console/test/actions/**/*.test.ts",
  "packages/server/test/{backends,checkpoints,collection,hostile,http,manager,records,resume,websocket}/**/*.test.ts",
  "packages/server/test/lease/{model,simulation}/**/*.test.ts",
  "packages/server/test/store/directory-*.test.ts",
  "scripts/test/bootstrap.test.ts",
];

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...patience,
          name: "unit",
          // Much of their time is waiting.
          maxWorkers: 4,
          // Loading the sources anew for each file took half of the processors' time.
          isolate: false,
          include: ["packages/*/test/**/*.test.ts", "scripts/test/**/*.test.ts"],
          exclude: [...ELSEWHERE, ...SERVERS],
        },
      },
      {
        test: {
          ...patience,
          name: "servers",
          maxWorkers: 4,
          isolate: false,
          include: SERVERS,
          exclude: ELSEWHERE,
        },
      },
      {
        test: {
          // Those of the other projects that are attacks: `npm run test:hostile`.
          ...patience,
          name: "hostile",
          include: ["packages/*/test/**/*.hostile.test.ts"],
          isolate: false,
          maxWorkers: 4,
        },
      },
      {
        test: {
          ...patience,
          name: "crash",
          include: ["packages/server/test/crash/**/*.test.ts"],
          exclude: ["**/*.gvisor.test.ts"],
          // Loading the server's sources once for all files of a worker saves a third of the time.
          isolate: false,
        },
      },
      {
        test: {
          ...patience,
          name: "stores",
          include: ["packages/server/test/store/bucket-*.test.ts"],
          // Loading the sources and the clients of the stores once for all files of a worker saves time.
          isolate: false,
          maxWorkers: 3,
        },
      },
      {
        test: { ...patience, name: "agent", include: ["agent/test/**/*.test.ts"] },
      },
      {
        test: {
          ...patience,
          name: "extensions",
          include: ["packages/server/test/**/*.extension.test.ts"],
          globalSetup: ["packages/server/test/services/extension-services.ts"],
          fileParallelism: false,
          // Loading the server's sources once for all files saves time.
          isolate: false,
        },
      },
      {
        test: {
          ...patience,
          name: "docker",
          include: ["packages/server/test/**/*.docker.test.ts"],
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
          include: ["packages/console/test/**/*.browser.test.ts"],
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
          include: ["packages/*/test/**/*.gvisor.test.ts"],
          // Loading the server's sources once for all files of a worker saves time.
          isolate: false,
          maxWorkers: 3,
        },
      },
    ],
  },
});
