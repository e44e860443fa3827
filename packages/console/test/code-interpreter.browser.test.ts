import { execFile } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { expect, inject, onTestFinished, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../test/kit/server/server-process.ts";
import { startDockerRegistry } from "../../../test/kit/services/docker-registry.ts";
import { pushPythonImage } from "../../../test/kit/services/python-image.ts";
import { SmallInternet } from "../../../test/kit/small-internet.ts";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";

const run = promisify(execFile);
const EXAMPLE = fileURLToPath(new URL("../../../examples/code-interpreter/", import.meta.url));

test.skipIf(whyNoEngine() !== undefined)(
  "the code interpreter has an image, a package, a chart, and a URL that resumes it on another server after kill -9",
  async () => {
    const registry = await startDockerRegistry();
    onTestFinished(() => registry.stop());
    const internet = new SmallInternet(await temporaryFolder());
    await internet.open();
    onTestFinished(() => internet.close());
    const [image] = await Promise.all([
      pushPythonImage(registry.host, await temporaryFolder()),
      internet.offerWheels("pygal==3.0.5"),
    ]);
    const store = await temporaryFolder();
    const serve = (port = "0"): Promise<ServerProcess> => {
      const network = ["--network-allow", "127.0.0.0/8", "--network-nameservers", internet.names.address];
      return ServerProcess.start({
        store,
        flags: ["--port", port, "--insecure-registry", registry.host, "--lease-ttl", "5s", ...network],
      });
    };
    const first = await serve();
    const { port, origin } = new URL(first.url.replace(/^ws/, "http"));
    const env = {
      ...process.env,
      SANDBOXER_URL: origin,
      IMAGE: image,
      ALLOW: "*.test",
      PIP_INDEX_URL: `http://pypi.test:${internet.port}/simple`,
      PIP_TRUSTED_HOST: "pypi.test",
    };
    const outputs = await Promise.all(
      [[process.execPath, "interpreter.ts"] as const, ["sh", "interpreter.sh"] as const].map(
        async ([program, script]) => {
          const cwd = join(await temporaryFolder(), "work");
          await mkdir(cwd);
          const { stdout } = await run(program, [join(EXAMPLE, script)], { cwd, env });
          expect(await readFile(join(cwd, "chart.svg"), "utf8")).toContain("<svg");
          return stdout;
        },
      ),
    );
    const urls = outputs.map((output) => {
      expect(output).toContain("total: 532");
      return /^serves +(\S+)$/m.exec(output)?.[1] ?? "";
    });

    await first.killHard();
    await serve(port);
    const browser = await chromium.connect(inject("consoleBrowser").endpoint);
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    for (const url of urls) {
      await page.goto(url);
      await page.getByRole("heading", { name: "Sales" }).waitFor();
      const drawn = (): Promise<boolean> =>
        page.getByRole("img", { name: "Chart" }).evaluate((picture) => (picture as HTMLImageElement).naturalWidth > 0);
      await expect.poll(drawn).toBe(true);
    }
  },
);
