import { defineConfig } from "vitest/config";

/** `unit` needs nothing but Node; `agent` needs a C compiler; `gvisor` needs root and runsc (see scripts/test.ts). */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["packages/*/test/**/*.test.ts", "scripts/test/**/*.test.ts"],
          exclude: ["**/*.gvisor.test.ts"],
          testTimeout: 20_000,
        },
      },
      {
        test: { name: "agent", include: ["agent/test/**/*.test.ts"], testTimeout: 60_000 },
      },
      {
        test: {
          name: "gvisor",
          include: ["packages/*/test/**/*.gvisor.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
        },
      },
    ],
  },
});
