import type { Clock } from "../../support/clock.ts";
import type { Maker } from "./labels.ts";

/** A value that is hidden when printed; revealed where it is sent. */
export interface HiddenValue {
  reveal(): string;
}

export interface DaytonaOptions {
  /** Read at the first call, and again after Daytona refused it. The value is kept hidden. */
  readonly apiKey: () => Promise<HiddenValue>;
  readonly organizationId?: string;
  readonly apiUrl?: string;
  /** Absent: the address that each sandbox reports. */
  readonly toolboxUrl?: string;
  /** The region of new sandboxes. */
  readonly target?: string;
  /** The installation, for recovery after dead servers; absent: sandboxes are not marked. */
  readonly maker?: Maker;
  /** Called after everything of this process was stopped. */
  readonly onClosed?: () => Promise<void>;
  readonly clock?: Clock;
  readonly timing?: Partial<DaytonaTiming>;
}

export interface DaytonaTiming {
  /** For one request. */
  readonly requestTimeoutMs: number;
  /** Until a sandbox has started or stopped. */
  readonly changeTimeoutMs: number;
  /** Until the image of a new sandbox is built, or a snapshot is usable. */
  readonly buildTimeoutMs: number;
  readonly firstPollMs: number;
  readonly maxPollMs: number;
  /** How often a sandbox is polled. */
  readonly watchMs: number;
}

export const DEFAULT_API_URL = "https://app.daytona.io/api";
/** https://www.daytona.io/docs/en/tools/api/#daytona-toolbox */
export const DEFAULT_TOOLBOX_URL = "https://proxy.app.daytona.io/toolbox";

export const DEFAULT_TIMING: DaytonaTiming = {
  requestTimeoutMs: 30_000,
  changeTimeoutMs: 120_000,
  buildTimeoutMs: 900_000,
  firstPollMs: 100,
  maxPollMs: 2000,
  watchMs: 30_000,
};
