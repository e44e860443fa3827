import type { SetupContext } from "../context.ts";

/** One thing that the product needs or can use, and whether it is here. */
export interface CheckResult {
  readonly name: string;
  /** `unknown`: it cannot be told without making something, which `doctor` never does. */
  readonly state: "found" | "missing" | "unknown";
  readonly needed: boolean;
  readonly version?: string | undefined;
  /** One line for people. */
  readonly message: string;
  /** What to paste or do; only where something is missing or unknown. */
  readonly remedy?: string | undefined;
}

export interface CheckContext extends Omit<SetupContext, "report"> {
  readonly dataDirectory: string;
  readonly store: string | undefined;
  /** Why a folder cannot be the store, where that is known before anything is tried. */
  readonly storeProblem?: { readonly message: string; readonly hint: string } | undefined;
  readonly signal: AbortSignal;
}

/** Never throws and installs nothing. May answer with several results. */
export type Check = (context: CheckContext) => Promise<CheckResult | CheckResult[]>;
