import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { hasOpenssl, makeCertificate } from "../kit/certificates.ts";
import { eventually } from "../kit/eventually.ts";
import { ServerProcess } from "../kit/server/server-process.ts";
import { deployPrograms, whyNoDeployPrograms } from "../kit/services/deploy-programs.ts";
import { temporaryFolder } from "../kit/temporary-folder.ts";

const FOLDER = join(import.meta.dirname, "../../deploy/monitoring");
const run = promisify(execFile);
const missing = whyNoDeployPrograms();
if (missing !== undefined) console.warn(`promtool does not check deploy/monitoring: ${missing}`);

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

/** The metrics of an expression with the labels that it selects or groups by. */
function usesOf(expression: string): { readonly name: string; readonly labels: readonly string[] }[] {
  const groups = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = ""]) => names.split(/, */));
  return [...expression.matchAll(/\b(sandboxer_\w+)(?:\{([^}]*)\})?/g)].map(([, name = "", selected = ""]) => ({
    name,
    labels: [...groups, ...[...selected.matchAll(/(\w+)(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label)],
  }));
}

/** Prometheus adds these itself. */
const ADDED = new Set(["job", "instance"]);

test.skipIf(missing !== undefined)("promtool accepts the alert rules, and their tests pass", async () => {
  await run(deployPrograms.promtool, ["check", "rules", join(FOLDER, "alerts.yaml")]);
  const tested = await run(deployPrograms.promtool, ["test", "rules", join(FOLDER, "alerts.test.yaml")]);
  expect(tested.stdout).toContain("SUCCESS");
});

test.skipIf(!hasOpenssl())("a running server reports every metric and label that rules and dashboard use", async () => {
  const { certFile, keyFile, cert } = await makeCertificate();
  const store = join(await temporaryFolder(), "store");
  const flags = ["--backend", "fake", "--tls-cert", certFile, "--tls-key", keyFile];
  const server = await ServerProcess.start({ store, flags });
  const client = server.connect("/create", { ca: cert }).send({ enable_checkpoint: true });
  await client.until("RUNNING");
  client.send({ action: "checkpoint" });
  await client.closed;
  await server.connect("/create", { ca: cert }).send({}).until("RUNNING");
  const { Agent, request } = await import("node:https");
  const metrics = async (): Promise<string> =>
    await new Promise((resolve, reject) => {
      const asked = request(
        `${server.url.replace(/^ws/, "http")}/metrics`,
        { agent: new Agent({ ca: cert }) },
        (answer) => {
          let text = "";
          answer.on("data", (data: Buffer) => (text += data.toString())).on("end", () => resolve(text));
        },
      );
      asked.on("error", reject).end();
    });
  await eventually("the checkpoint is counted", async () => /operation="checkpoint"/.test(await metrics()));
  const known = new Map<string, Set<string>>();
  for (const [, name = "", labels = ""] of (await metrics()).matchAll(/^(sandboxer_\w+)(?:\{([^}]*)\})? /gm)) {
    const names = known.get(name) ?? new Set();
    for (const [, label = ""] of labels.matchAll(/(\w+)=/g)) names.add(label);
    known.set(name, names);
  }
  const rules = (await readFile(join(FOLDER, "alerts.yaml"), "utf8")).matchAll(/- alert: (\w+)\n +expr: (.+)$/gm);
  const dashboard = JSON.parse(await readFile(join(FOLDER, "grafana-dashboard.json"), "utf8")) as Dashboard;
  const expressions = [
    ...[...rules].map(([, where = "", expr = ""]) => ({ where, expr })),
    ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ where: title, expr }))),
  ];
  expect(expressions.length).toBeGreaterThan(20);
  const wrong = expressions.flatMap(({ where, expr }) =>
    usesOf(expr).flatMap(({ name, labels }) => {
      const has = known.get(name);
      if (has === undefined) return [`${where}: there is no ${name}`];
      return labels
        .filter((label) => !ADDED.has(label) && !has.has(label))
        .map((label) => `${where}: ${name} has no ${label}`);
    }),
  );
  expect(wrong).toEqual([]);
});
