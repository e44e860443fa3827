import type { BrowserContext, Page, Request, Response } from "playwright-core";

/** An answer that a test provokes. */
export interface ExpectedAnswer {
  readonly status: number;
  readonly path: RegExp;
}

/** Chromium cancels downloads when the machine gets another network interface, which concurrent tests create. */
const NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED";

declare global {
  interface Window {
    /** Set by hostile data that was executed. */
    pwned?: unknown;
    /** The callback of the page's guard. */
    reportViolation?: (text: string) => void;
  }
}

/** Watches the pages of a context for everything that must never happen in the console. */
export class PageGuard {
  readonly #problems: string[] = [];
  readonly #expectedAnswers: ExpectedAnswer[] = [];
  readonly #expectedProblems: RegExp[] = [];
  readonly #origins: Set<string>;

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  async watch(context: BrowserContext): Promise<void> {
    await context.exposeFunction("reportViolation", (text: string) => this.#note(`policy violated: ${text}`));
    await context.addInitScript(() => {
      addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) =>
        window.reportViolation?.(`${violatedDirective} by ${blockedURI} at ${sourceFile}:${lineNumber}`),
      );
    });
    context.on("page", (page) => this.#watchPage(page));
  }

  /** A refusal that is part of the test. */
  expectAnswer(status: number, path: RegExp): void {
    this.#expectedAnswers.push({ status, path });
  }

  /** A problem that is part of the test, by its text. */
  expectProblem(text: RegExp): void {
    this.#expectedProblems.push(text);
  }

  /** Another place that the pages may talk to. */
  allowOrigin(url: string): void {
    this.#origins.add(new URL(url).origin);
  }

  /** The unexpected problems so far. */
  problems(): readonly string[] {
    return this.#problems.filter((text) => !this.#expectedProblems.some((expected) => expected.test(text)));
  }

  #watchPage(page: Page): void {
    page.on("pageerror", (error) => this.#note(`uncaught: ${error.stack ?? error.message}`));
    page.on("console", (message) => {
      // Refused requests are judged by their responses, and lost ones by their failures.
      const ofAnswer = message.text().startsWith("Failed to load resource:");
      if (message.type() === "error" && !ofAnswer) this.#note(`console: ${message.text()} (${message.location().url})`);
    });
    page.on("dialog", (dialog) => {
      this.#note(`dialog: ${dialog.type()} ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => this.#checkOrigin(request.url()));
    page.on("websocket", (socket) => this.#checkOrigin(socket.url()));
    page.on("requestfailed", (request) => this.#judgeFailure(request));
    page.on("response", (response) => this.#judgeAnswer(response));
    page.on("crash", () => this.#note("the page crashed"));
  }

  #checkOrigin(url: string): void {
    if (/^(data|blob|about):/.test(url)) return;
    const { origin } = new URL(url.replace(/^ws/, "http"));
    if (!this.#origins.has(origin)) this.#note(`request to another origin: ${url.slice(0, 200)}`);
  }

  #judgeFailure(request: Request): void {
    const why = request.failure()?.errorText ?? "";
    // A page that is left, or a removed component, cancels its requests.
    if (why === "net::ERR_ABORTED" || why === NETWORK_CHANGED) return;
    this.#note(`failed: ${request.method()} ${request.url()}: ${why}`);
  }

  #judgeAnswer(response: Response): void {
    const status = response.status();
    if (status < 400) return;
    const { pathname } = new URL(response.url());
    const expected = this.#expectedAnswers.some((each) => each.status === status && each.path.test(pathname));
    if (!expected) this.#note(`answer: ${status} to ${response.request().method()} ${pathname}`);
  }

  #note(problem: string): void {
    this.#problems.push(problem);
  }
}
