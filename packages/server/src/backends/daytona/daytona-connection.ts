import { HttpJson } from "../../support/http-json.ts";
import { joinUrl } from "../../support/join-url.ts";
import type { Clock } from "../../support/clock.ts";
import { systemClock } from "../../support/clock.ts";
import { explainFailure } from "./daytona-errors.ts";
import {
  type DaytonaOptions,
  type DaytonaTiming,
  DEFAULT_API_URL,
  DEFAULT_TIMING,
  DEFAULT_TOOLBOX_URL,
} from "./daytona-options.ts";

/** Who asks whom: the control plane on one host, each sandbox's toolbox on another, the same headers for both. */
export class DaytonaConnection {
  readonly api: HttpJson;
  readonly apiUrl: string;
  readonly timing: DaytonaTiming;
  readonly clock: Clock;
  readonly target: string | undefined;
  readonly organizationId: string | undefined;
  readonly #options: DaytonaOptions;

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
      headers: (signal) => this.#headers(signal),
      explain: explainFailure,
      timeoutMs: this.timing.requestTimeoutMs,
      clock: this.clock,
    });
  }

  async #headers(signal: AbortSignal): Promise<Record<string, string>> {
    const key = await this.#options.apiKey({ signal });
    return {
      authorization: `Bearer ${key.reveal()}`,
      // Which of the user's organizations is meant: https://www.daytona.io/docs/en/api-keys/
      ...(this.organizationId === undefined ? {} : { "x-daytona-organization-id": this.organizationId }),
    };
  }
}
