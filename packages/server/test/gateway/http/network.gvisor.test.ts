import { describe, expect, onTestFinished, test } from "vitest";
import type { CreatedSandboxRecord, SandboxNetworkRecord } from "@sandboxer/protocol";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { SmallInternet } from "../../../../../test/kit/small-internet.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { SandboxClient } from "./processes/support.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of the network proxy on gVisor are skipped: ${missing}`);

/** Each prints one line, and nothing else on stdout. */
const programs = (port: number, securePort: number) => ({
  pip: `/usr/bin/python3 -m pip install -q --disable-pip-version-check --no-cache-dir --break-system-packages \
    --index-url http://pypi.test:${port}/simple --trusted-host pypi.test --target $PWD/py hello-sbx >&2 &&
    PYTHONPATH=$PWD/py /usr/bin/python3 -c 'import hello_sbx'`,
  npm: `mkdir -p js && cd js && npm install --silent --no-audit --no-fund --cache $PWD/cache \
    --registry http://npm.test:${port} hello-sbx >&2 && /usr/bin/node -p 'require("hello-sbx")'`,
  git: `git clone -q http://git.test:${port}/repo.git && cat repo/hello.txt`,
  apt: `mkdir -p apt/lists/partial apt/cache && echo 'deb [trusted=yes] http://apt.test:${port} ./' > apt/list &&
    apt-get update -q -o Dir::State=$PWD/apt -o Dir::Cache=$PWD/apt/cache -o Dir::Etc::SourceList=$PWD/apt/list \
    -o Dir::Etc::SourceParts=- -o Dir::State::Status=/dev/null -o Debug::NoLocking=1 -o APT::Sandbox::User= >&2 &&
    grep -h ^Package: apt/lists/*Packages`,
  curl: `curl -sS --cacert /workspace/cert.pem https://web.test:${securePort}/`,
});

const EXPECTED = {
  pip: "hello from the wheel\n",
  npm: "hello from npm\n",
  git: "hello from git\n",
  apt: "Package: hello-sbx\n",
  curl: "hello from the web\n",
};

describe.skipIf(missing !== undefined)("the network proxy, on gVisor", () => {
  const tryAll = async (
    internet: SmallInternet,
    box: SandboxClient,
    names: readonly (keyof typeof EXPECTED)[],
  ): Promise<object> => {
    const all = programs(internet.port, internet.securePort);
    const results: Record<string, string> = {};
    for (const name of names) {
      const inNewFolder = `mkdir -p /workspace/$$ && cd /workspace/$$ && ${all[name]}`;
      const { exit_code, stdout, stderr } = await box.exec({ shell: inNewFolder });
      results[name] = exit_code === 0 ? stdout : `${exit_code} ${stdout} ${stderr}`;
    }
    return results;
  };
  const every = Object.keys(EXPECTED) as (keyof typeof EXPECTED)[];

  test("pip, npm, git, apt and curl work before and after a pause at another server and a fork, under one policy", async () => {
    const internet = new SmallInternet(await temporaryFolder());
    await internet.open();
    onTestFinished(() => internet.close());
    const store = await temporaryFolder();
    const start = async (): Promise<{ httpUrl: string }> => {
      const flags = ["--network-allow", "127.0.0.0/8", "--network-nameservers", internet.names.address];
      const server = await ServerProcess.start({ store, flags });
      return { httpUrl: server.url.replace(/^ws/, "http") };
    };
    const first = await start();
    const box = await SandboxClient.create(first, { network: { allow: ["*.test"] } });
    const cert = await internet.certificate;
    const put = await fetch(`${box.url}/files?path=/workspace/cert.pem`, {
      method: "PUT",
      headers: { "content-type": "application/octet-stream" },
      body: cert,
    });
    expect(put.status).toBeLessThan(300);
    expect(await tryAll(internet, box, every)).toEqual(EXPECTED);

    // A program that started before keeps its environment, and its proxy.
    const loop = await box.spawn({ shell: `while read line; do curl -sS http://web.test:${internet.port}/; done` });
    await box.call("POST", "/checkpoint");
    const second = await start();
    const moved = new SandboxClient(second, box.id);
    expect((await moved.call("POST", "/resume")).status).toBe(200);
    expect(await tryAll(internet, moved, every)).toEqual(EXPECTED);
    await moved.stdin(loop.id, "go\n");
    await expect
      .poll(async () => JSON.stringify(await moved.output(loop.id)), { timeout: 30_000 })
      .toContain("hello from the web");

    const refused = await moved.exec({ shell: "curl -sS https://evil.example/" });
    expect(refused).toMatchObject({
      exit_code: 56,
      hint: expect.stringContaining("refused evil.example:443: not in allow"),
    });
    expect(internet.names.asked).not.toContain("evil.example");
    const around = await moved.exec({
      shell: `curl -sS --noproxy '*' --max-time 5 http://127.0.0.1:${internet.port}/`,
    });
    expect(around.exit_code).toBe(7);

    const fork = await moved.call<{ items: CreatedSandboxRecord[] }>("POST", "/fork", { count: 1 });
    const child = new SandboxClient(second, fork.body.items[0]?.id ?? "");
    expect(await tryAll(internet, child, ["git", "curl"])).toEqual({ git: EXPECTED.git, curl: EXPECTED.curl });

    expect((await child.call("PATCH", "", { network: "none" })).status).toBe(200);
    const cut = await child.exec({ shell: `curl -sS http://web.test:${internet.port}/` });
    expect(cut).toMatchObject({ exit_code: 6, hint: expect.stringContaining("has no network") });
    const { body } = await moved.call<SandboxNetworkRecord>("GET", "/network");
    expect(body).toMatchObject({ way: "proxy", policy: { allow: ["*.test"] } });
    expect(body.refused).toMatchObject([{ name: "evil.example", port: 443, rule: "not in allow" }]);
    expect(body.received_bytes).toBeGreaterThan(1000);
  });
});
