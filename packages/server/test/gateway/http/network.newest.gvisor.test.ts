import { execFileSync } from "node:child_process";
import { describe, expect, onTestFinished, test } from "vitest";
import type { CreatedSandboxRecord, SandboxNetworkRecord } from "@sandboxer/protocol";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { SmallInternet } from "../../../../../test/kit/small-internet.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { probeNetwork } from "../../../src/backends/gvisor/network/network-support.ts";
import { SandboxClient } from "./processes/support.ts";

const missing = whyNoEngine();
const namespaces = await probeNetwork(process.env["SANDBOXER_TEST_RUNSC_VERSION"] ?? "", process.env["PATH"] ?? "");
if (missing !== undefined) console.warn(`The tests of the network on gVisor are skipped: ${missing}`);

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

describe.skipIf(missing !== undefined)("the network of a sandbox, on gVisor", () => {
  const every = Object.keys(EXPECTED) as (keyof typeof EXPECTED)[];
  /** At once: most of their time is that of their start. */
  const tryAll = async (internet: SmallInternet, box: SandboxClient, names = every): Promise<object> => {
    const all = programs(internet.port, internet.securePort);
    const results = names.map(async (name) => {
      const inNewFolder = `mkdir -p /workspace/$$ && cd /workspace/$$ && ${all[name]}`;
      const { exit_code, stdout, stderr } = await box.exec({ shell: inNewFolder });
      return [name, exit_code === 0 ? stdout : `${exit_code} ${stdout} ${stderr}`] as const;
    });
    return Object.fromEntries(await Promise.all(results));
  };

  /** Servers of one store, a sandbox with a policy on the first, and the servers that its programs talk to. */
  const begin = async (address: string, ...flags: string[]) => {
    const internet = new SmallInternet(await temporaryFolder(), address);
    await internet.open();
    onTestFinished(() => internet.close());
    const store = await temporaryFolder();
    const start = async (...others: string[]): Promise<{ httpUrl: string }> => {
      const reach = ["--network-allow", `${address}/32`, "--network-nameservers", internet.names.address];
      const server = await ServerProcess.start({ store, flags: [...reach, ...flags, ...others] });
      return { httpUrl: server.url.replace(/^ws/, "http") };
    };
    const first = await start();
    const network = { allow: ["*.test"] };
    const box = await SandboxClient.create(first, { network, enable_sandbox_handoff: true });
    const put = await fetch(`${box.url}/files?path=/workspace/cert.pem`, {
      method: "PUT",
      headers: { "content-type": "application/octet-stream" },
      body: await internet.certificate,
    });
    expect(put.status).toBeLessThan(300);
    return { internet, start, first, box };
  };
  const move = async (box: SandboxClient, to: { httpUrl: string }): Promise<SandboxClient> => {
    await box.call("POST", "/checkpoint");
    const moved = new SandboxClient(to, box.id);
    expect((await moved.call("POST", "/resume")).status).toBe(200);
    return moved;
  };
  const handOff = async (box: SandboxClient, to: { httpUrl: string }): Promise<SandboxClient> => {
    expect(await box.call("POST", "/handoff", { to: to.httpUrl })).toMatchObject({ status: 200 });
    return new SandboxClient(to, box.id);
  };
  const fork = async (box: SandboxClient, at: { httpUrl: string }): Promise<SandboxClient> => {
    const { body } = await box.call<{ items: CreatedSandboxRecord[] }>("POST", "/fork", { count: 1 });
    return new SandboxClient(at, body.items[0]?.id ?? "");
  };

  test("pip, npm, git, apt and curl work before and after a restore, a fork and its handoff, under one policy", async () => {
    const { internet, start, first, box } = await begin("127.0.0.1");
    expect(await tryAll(internet, box)).toEqual(EXPECTED);

    // A program that started before keeps its environment, and its proxy.
    const loop = await box.spawn({ shell: `while read line; do curl -sS http://web.test:${internet.port}/; done` });
    const second = await start();
    const moved = await move(box, second);
    expect(await tryAll(internet, moved)).toEqual(EXPECTED);
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
    const { body } = await moved.call<SandboxNetworkRecord>("GET", "/network");
    expect(body).toMatchObject({ way: "proxy", policy: { allow: ["*.test"] } });
    expect(body.refused).toMatchObject([{ name: "evil.example", port: 443, rule: "not in allow" }]);
    expect(body.received_bytes).toBeGreaterThan(1000);

    const child = await handOff(await fork(moved, second), first);
    expect(await tryAll(internet, child)).toEqual(EXPECTED);

    expect((await child.call("PATCH", "", { network: "none" })).status).toBe(200);
    const cut = await child.exec({ shell: `curl -sS http://web.test:${internet.port}/` });
    expect(cut).toMatchObject({ exit_code: 6, hint: expect.stringContaining("has no network") });
  });

  const own = namespaces.ok ? "" : `, skipped: ${namespaces.reason}`;
  test.skipIf(!namespaces.ok)(`the same programs work in networks of their own${own}`, async () => {
    const address = "198.51.100.213";
    execFileSync("ip", ["address", "replace", `${address}/32`, "dev", "lo"]);
    onTestFinished(() => void execFileSync("ip", ["address", "delete", `${address}/32`, "dev", "lo"]));
    const { internet, start, first, box } = await begin(address, "--network-mode", "namespace");
    expect(await tryAll(internet, box)).toEqual(EXPECTED);
    const second = await start();
    const moved = await move(box, second);
    expect(await tryAll(internet, moved)).toEqual(EXPECTED);
    expect(await moved.exec({ shell: "env | grep -i _proxy" })).toMatchObject({ stdout: "" });
    const refused = await moved.exec({ shell: "curl -sS https://evil.example/" });
    expect(refused).toMatchObject({
      exit_code: 6,
      hint: expect.stringContaining("refused evil.example:53: not in allow"),
    });
    expect(internet.names.asked).not.toContain("evil.example");
    const pretended = `curl -sSk --max-time 20 --resolve evil.example:${internet.securePort}:${address}`;
    expect(await moved.exec({ shell: `${pretended} https://evil.example:${internet.securePort}/` })).toMatchObject({
      exit_code: 35,
      hint: expect.stringMatching(/refused evil\.example:\d+: SNI differs from \w+\.test: not in allow/),
    });
    const { body } = await moved.call<SandboxNetworkRecord>("GET", "/network");
    expect(body).toMatchObject({ way: "own", policy: { allow: ["*.test"] } });
    expect(body.received_bytes).toBeGreaterThan(1000);

    const child = await handOff(await fork(moved, second), first);
    expect(await tryAll(internet, child, ["git", "curl"])).toEqual({ git: EXPECTED.git, curl: EXPECTED.curl });
    expect((await child.call("PATCH", "", { network: "none" })).status).toBe(200);
    expect((await child.exec({ shell: `curl -sS http://web.test:${internet.port}/` })).exit_code).toBe(6);

    const third = await start("--network-mode", "proxy");
    const proxied = await move(moved, third);
    expect((await proxied.call<SandboxNetworkRecord>("GET", "/network")).body.way).toBe("proxy");
    expect(await tryAll(internet, proxied, ["pip", "curl"])).toEqual({ pip: EXPECTED.pip, curl: EXPECTED.curl });
    await proxied.call("POST", "/checkpoint");
    const without = new SandboxClient(await start("--network-mode", "off"), box.id);
    expect(await without.call("POST", "/resume")).toMatchObject({
      status: 422,
      body: { error: { code: "not_supported", message: expect.stringContaining("cannot have network access") } },
    });
  });
});
