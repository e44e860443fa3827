import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import type { Sandboxer } from "@sandboxer/client";
import { expect, inject, onTestFinished } from "vitest";
import type { ImageLibrary } from "../../../server/src/images/image-library.ts";
import {
  startServers,
  type Backend,
  type ConsoleKeys,
  type ConsoleServer,
  type KeyScope,
  type ServersOptions,
} from "./console-servers.ts";
import { PageGuard } from "./page-guard.ts";
import { keepFailures, takeScreenshots } from "./screenshots.ts";

export interface ConsoleOptions {
  /** Default: fake. On gVisor the server is a process of its own: skip with `whyNoEngine`. */
  readonly backend?: Backend;
  /** Servers on one store (default 1). The page is at the first. */
  readonly instances?: 1 | 2;
  /** Makes the servers require keys, and logs in with one of that scope; `"logged out"` does not. */
  readonly keys?: KeyScope | "logged out";
  /** Where the page begins (default `/`); false: it is not opened. */
  readonly path?: string | false;
  /** The settings of the browser: viewport, colorScheme, reducedMotion … */
  readonly browser?: BrowserContextOptions;
  readonly leaseTtlMs?: number;
  /** False: without a store. */
  readonly store?: boolean;
  /** Container images of the server; absent: none. */
  readonly images?: ImageLibrary;
  /** Replaces parts of the fake backend. */
  readonly wrapBackend?: ServersOptions["wrapBackend"];
  /** The credentials of servers that speak HTTPS. */
  readonly tls?: ServersOptions["tls"];
}

/** A page of the console on a real server. All of it ends with the test, which fails if the page had a problem. */
export interface TestConsole {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly server: ConsoleServer;
  readonly servers: readonly ConsoleServer[];
  /** The SDK at the first server. */
  readonly client: Sandboxer;
  readonly url: string;
  readonly keys: ConsoleKeys | undefined;
  readonly guard: PageGuard;
  /** Opens a path of the console, as by a typed URL. */
  readonly open: (path: string) => Promise<void>;
  /** Keeps pictures of the page in both themes in build/console-screenshots. */
  readonly screenshot: (name: string) => Promise<void>;
}

const WAIT_MS = 20_000;

let connected: Promise<Browser> | undefined;

export async function startConsole(options: ConsoleOptions = {}): Promise<TestConsole> {
  const { servers, keys } = await startServers({
    backend: options.backend ?? "fake",
    instances: options.instances ?? 1,
    keys: options.keys !== undefined,
    leaseTtlMs: options.leaseTtlMs,
    store: options.store,
    images: options.images,
    wrapBackend: options.wrapBackend,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
  });
  const [server] = servers;
  if (server === undefined) throw new Error("There is a first server.");
  const { url, client } = server;

  const guard = new PageGuard([url]);
  const context = await newContext(guard, options.browser);
  if (keys !== undefined) guard.expectAnswer(401, /^\/v1\/server$/);
  if (keys !== undefined && options.keys !== "logged out") {
    await logInByRequest(context, url, keys.texts[options.keys ?? "admin"]);
  }
  const page = await context.newPage();
  const open = async (path: string): Promise<void> => void (await page.goto(url + path));
  if (options.path !== false) await open(options.path ?? "/");
  return {
    page,
    context,
    server,
    servers,
    client,
    url,
    keys,
    guard,
    open,
    screenshot: (name) => takeScreenshots(page, name),
  };
}

/** An empty context of the run's browser, watched until the end of the test. */
async function newContext(guard: PageGuard, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  connected ??= chromium.connect(inject("consoleBrowser").endpoint);
  const browser = await connected;
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    permissions: ["clipboard-read", "clipboard-write"],
    ...options,
  });
  context.setDefaultTimeout(WAIT_MS);
  await guard.watch(context);
  onTestFinished(async ({ task }) => {
    if (task.result?.state === "fail") await keepFailures(context.pages(), task.name);
    const executed = await Promise.all(
      context.pages().map((page) => page.evaluate(() => window.pwned).catch(() => undefined)),
    );
    await context.close();
    expect(guard.problems()).toEqual([]);
    expect(executed.filter((value) => value !== undefined)).toEqual([]);
  });
  return context;
}

/** As the login page does it, without the page. */
async function logInByRequest(context: BrowserContext, url: string, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, origin: url };
  const response = await context.request.post(`${url}/v1/login`, { headers });
  expect(response.status()).toBe(200);
}
