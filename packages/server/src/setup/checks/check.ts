import type { SetupContext } from "../context.ts";

/** One requirement or optional feature of the product, and whether it is available. */
export interface CheckResult {
  readonly name: string;
  /** `unknown`: it cannot be checked without creating something, which `doctor` never does. */
  readonly state: "found" | "missing" | "unknown";
  readonly needed: boolean;
  readonly version?: string | undefined;
  /** One line for people. */
  readonly message: string;
  /** The command or action; only if something is missing or unknown. */
  readonly remedy?: string | undefined;
}

export interface CheckContext extends Omit<SetupContext, "report"> {
  readonly dataDirectory: string;
  readonly store: string | undefined;
  /** Why a folder cannot be the store, if that is known without a test. */
  readonly storeProblem?: { readonly message: string; readonly hint: string } | undefined;
  /** The root filesystem of new sandboxes; absent: `host`. */
  readonly image?: string | undefined;
  readonly signal: AbortSignal;
}

/** Never throws and installs nothing. May return several results. */
export type Check = (context: CheckContext) => Promise<CheckResult | CheckResult[]>;
