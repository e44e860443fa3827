import type { ListSandboxesResponse, Sandbox, SandboxListItem, SandboxState, SnapshotDto } from "@daytona/api-client";
import type {
  Command,
  ExecuteResponse,
  FileInfo,
  PtyCreateResponse,
  Session,
  SessionExecuteResponse,
  SystemMetrics,
  WorkDirResponse,
} from "@daytona/toolbox-api-client";
import * as vendor from "@daytona/api-client";
import { expect, expectTypeOf, test } from "vitest";
import type { z } from "zod";
import type { sandboxPageSchema, sandboxSchema, snapshotSchema } from "../../../src/backends/daytona/api-schemas.ts";
import { describeState, type DaytonaState, phaseOf } from "../../../src/backends/daytona/sandbox-state.ts";
import type * as toolbox from "../../../src/backends/daytona/toolbox/schemas.ts";

/** The type check fails here if the vendor's answers no longer match the schemas. */
test("the schemas match the vendor's answers", () => {
  expectTypeOf<Sandbox>().toExtend<z.input<typeof sandboxSchema>>();
  expectTypeOf<SandboxListItem>().toExtend<z.input<typeof sandboxSchema>>();
  expectTypeOf<ListSandboxesResponse>().toExtend<z.input<typeof sandboxPageSchema>>();
  expectTypeOf<SnapshotDto>().toExtend<z.input<typeof snapshotSchema>>();
  expectTypeOf<ExecuteResponse>().toExtend<z.input<typeof toolbox.executeSchema>>();
  expectTypeOf<WorkDirResponse>().toExtend<z.input<typeof toolbox.workFolderSchema>>();
  expectTypeOf<Command>().toExtend<z.input<typeof toolbox.commandSchema>>();
  expectTypeOf<Session>().toExtend<z.input<typeof toolbox.sessionSchema>>();
  expectTypeOf<SessionExecuteResponse>().toExtend<z.input<typeof toolbox.startedSchema>>();
  expectTypeOf<PtyCreateResponse>().toExtend<z.input<typeof toolbox.ptySchema>>();
  expectTypeOf<SystemMetrics>().toExtend<z.input<typeof toolbox.metricsSchema>>();
  expectTypeOf<FileInfo>().toExtend<z.input<typeof toolbox.fileInfoSchema>>();
  expectTypeOf<DaytonaState>().toExtend<SandboxState>();
});

test("every state of the vendor's client has a phase, and unknown ones count as transitional", () => {
  const known = Object.values(vendor.SandboxState).filter((state) => state !== "11184809");
  expect(known.length).toBeGreaterThan(15);
  for (const state of known) expect(describeState(state)).toBe(`the state "${state}"`);
  expect(["started", "stopped", "paused", "error", "destroying", "starting"].map(phaseOf)).toEqual([
    "running",
    "resting",
    "resting",
    "failed",
    "gone",
    "transition",
  ]);
  for (const state of [undefined, "hibernating", "toString"]) expect(phaseOf(state)).toBe("transition");
  expect(describeState("hibernating")).toContain("does not know");
});
