/**
 * A code interpreter for an agent: an image from a registry, a package from an index, a CSV file up, a chart down, and a
 * web page that resumes its sandbox when somebody opens it.
 *
 *   node examples/code-interpreter/interpreter.ts
 *
 * SANDBOXER_URL and SANDBOXER_API_KEY name the server. IMAGE and ALLOW replace the image and the hosts that it may
 * reach; pip gets its own variables, such as PIP_INDEX_URL.
 */
import { readFile, writeFile } from "node:fs/promises";
import { Sandbox } from "@sandboxer/client";

const { IMAGE = "python:3.12-slim", ALLOW = "pypi.org,files.pythonhosted.org" } = process.env;
const FOLDER = "/workspace";
const here = (name: string): URL => new URL(name, import.meta.url);

const { SANDBOXER_URL: url = "http://127.0.0.1:8080", SANDBOXER_API_KEY: apiKey } = process.env;
const sandbox = await Sandbox.create({
  url,
  ...(apiKey === undefined ? {} : { apiKey }),
  name: "code-interpreter",
  image: IMAGE,
  network: { allow: ALLOW.split(",") },
  env: Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value = ""]) => (name.startsWith("PIP_") ? [[name, value]] : [])),
  ),
});
console.log(`created   ${sandbox.id} from ${IMAGE}`);

await succeed("python3 -m pip install --quiet pygal");
console.log("installed pygal");

for (const name of ["sales.csv", "chart.py"])
  await sandbox.files.write(`${FOLDER}/${name}`, await readFile(here(name)));
console.log(`ran       chart.py: ${(await succeed("python3 chart.py")).trim()}`);

await writeFile("chart.svg", await sandbox.files.read(`${FOLDER}/chart.svg`));
console.log("wrote     chart.svg");

await sandbox.spawn(["python3", "-m", "http.server", "8000", "--directory", FOLDER], { detach: true });
while (!(await sandbox.ports()).some(({ port }) => port === 8000)) await new Promise((later) => setTimeout(later, 100));
const page = await sandbox.portUrl(8000, { expires: "1h" });
console.log(`serves    ${page.url}`);

await sandbox.checkpoint();
console.log("paused    Open the address: the sandbox resumes, at any server of the store.");

async function succeed(shell: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.exec(shell, { cwd: FOLDER });
  if (exitCode !== 0) throw new Error(`${shell} ended with ${exitCode}:\n${stderr}`);
  return stdout;
}
