import { HttpJson } from "../../support/http-json.ts";
import { joinUrl } from "../../support/join-url.ts";
import { systemClock, type Clock } from "../../support/clock.ts";
import { explainFailure } from "./daytona-errors.ts";
import { DEFAULT_API_URL, DEFAULT_TIMING, DEFAULT_TOOLBOX_URL } from "./daytona-options.ts";
import type { DaytonaOptions, DaytonaTiming, HiddenValue } from "./daytona-options.ts";

/**
 * Authenticated access: the control plane on one host, each sandbox's toolbox on another, the same headers for both.
 */
export class DaytonaConnection {
  readonly api: HttpJson;
  readonly apiUrl: string;
  readonly timing: DaytonaTiming;
  readonly clock: Clock;
  readonly target: string | undefined;
  readonly organizationId: string | undefined;
  readonly #options: DaytonaOptions;
  #key: Promise<HiddenValue> | undefined;

  constructor(options: DaytonaOptions) {
    this.#options = options;
    this.apiUrl = options.apiUrl ?? DEFAULT_API_URL;
    this.timing = { ...DEFAULT_TIMING, ...options.timing };
    this.clock = options.clock ?? systemClock;
    this.target = options.target;
    this.organizationId = options.organizationId;
    this.api = this.#http(this.apiUrl);
  }

  /** The toolbox of one sandbox: a host of its own. https://www.daytona.io/docs/en/tools/api/#daytona-toolbox */
  toolbox(vendorId: string, proxyUrl: string | undefined): HttpJson {
    const base = this.#options.toolboxUrl ?? proxyUrl ?? DEFAULT_TOOLBOX_URL;
    return this.#http(joinUrl(base, encodeURIComponent(vendorId)));
  }

  #http(baseUrl: string): HttpJson {
    return new HttpJson({
      baseUrl,
      headers: () => this.#headers(),
      explain: (failure) => {
        // A changed key is read again at the next call.
        if (failure.facts.status === 401) this.#key = undefined;
        return explainFailure(failure);
      },
      timeoutMs: this.timing.requestTimeoutMs,
      clock: this.clock,
    });
  }

  async #headers(): Promise<Record<string, string>> {
    const key = (this.#key ??= this.#options.apiKey());
    key.catch(() => {
      if (this.#key === key) this.#key = undefined;
    });
    return {
      authorization: `Bearer ${(await key).reveal()}`,
      // Selects one of the user's organizations: https://www.daytona.io/docs/en/api-keys/
      ...(this.organizationId === undefined ? {} : { "x-daytona-organization-id": this.organizationId }),
    };
  }
}
