import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import { bash, errorCode, python, readText, run } from "../contract/programs.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";
import { HIDDEN } from "./support/hidden-paths.ts";
import { openGvisor } from "./support/open-backend.ts";

describeGvisor("isolation", (engine) => {
  const fixture = new GvisorFixture(engine);
  let handle: SandboxHandle;
  beforeAll(async () => {
    process.env["SANDBOXER_TEST_SECRET"] = "of-the-server";
    handle = await fixture.acquire();
  });

  const shell = async (code: string): Promise<string> => {
    const { stdout, stderr } = await run(handle, bash(code));
    return (stdout + stderr).trim();
  };

  test("only programs and their files are visible of the host", async () => {
    expect(
      await shell(`for f in ${HIDDEN.join(" ")}; do [ -e $f ] && echo "$f is there"; done; ls -A /home /mnt /opt /srv`),
    ).toBe("/home:\n\n/mnt:\n\n/opt:\n\n/srv:");
    expect(await shell("find / -xdev -name 'id_*' -o -xdev -name '*.pem' -not -path '/usr/*' 2>/dev/null")).toBe("");
    expect(await shell("cat /etc/passwd | cut -d: -f1 | tr '\\n' ' '")).toBe("root user nobody");
  });

  test("the environment is the sandbox's own, for programs and for the agent", async () => {
    const output = await shell("env; cat /proc/1/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n'");
    expect(output).not.toContain("of-the-server");
    expect(output).not.toContain("SANDBOXER_");
    expect(output).toContain("HOME=/workspace");
  });

  test("no host process of a sandbox has the server's environment", async () => {
    const { path } = fixture.opened.runDirectory;
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const environments = await Promise.all(
      pids.map(async (pid) => {
        const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
        if (!commandLine.includes(`--root=${path}/`)) return [];
        return [await readFile(`/proc/${pid}/environ`, "utf8")];
      }),
    );
    expect(environments.flat().length).toBeGreaterThan(1);
    expect(environments.flat().join()).not.toContain("of-the-server");
  });

  test("a secret is in the environment of programs, and not in that of PID 1", async () => {
    const own = await fixture.acquire({ env: { API_TOKEN: "hunter2" } });
    const { stdout } = await run(own, bash("echo $API_TOKEN; tr '\\0' '\\n' < /proc/1/environ 2>/dev/null"));
    // gVisor of 2024 shows the second to every user.
    expect(stdout.split("\n").filter((line) => !/^(PATH=.*|HOME=\/)?$/.test(line))).toEqual(["hunter2"]);
    await own.destroy();
  });

  test("programs of the host are read-only", async () => {
    for (const path of ["/usr/bin/new", "/bin/new", "/lib/new", "/.sandboxer/new", "/etc/new"]) {
      expect(await shell(`echo x > ${path}`)).toMatch(/Permission denied|Read-only file system/);
    }
    expect(await errorCode(handle.files.remove("/usr/bin/env"))).toBe("permission_denied");
    // Beside them the sandbox can write its own.
    expect(await shell("echo hello > /test.txt; cat /test.txt; mv /etc /elsewhere")).toMatch(
      /^hello\nmv: .*not permitted/i,
    );
    expect(await shell("id -u; id -G")).toBe("1000\n1000");
  });

  test("the agent cannot be killed, traced, read or written to", async () => {
    expect(await shell("kill -9 1; kill -STOP 1; kill -TERM 1")).toMatch(/not permitted/i);
    const trace =
      "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())";
    expect((await run(handle, python(trace))).stdout.trim()).toMatch(/^-1 (1|3|13)$/);
    for (const path of ["/proc/1/mem", "/proc/1/fd/0", "/proc/1/fd/1", "/proc/1/root/etc"]) {
      expect(await shell(`cat ${path}`)).toMatch(/Permission denied|No such file|not permitted/);
      expect(await shell(`echo x > ${path}`)).toMatch(/Permission denied|No such file|not permitted|Is a directory/);
    }
    await handle.ping();
  });

  test("no program raises rights", async () => {
    expect(await shell("grep -E '^(CapEff|CapPrm|CapInh|CapAmb)' /proc/self/status | cut -f2 | sort -u")).toBe(
      "0000000000000000",
    );
    expect(await shell("grep NoNewPrivs /proc/self/status || echo 'NoNewPrivs: 1'")).toMatch(/1$/);
    expect(await shell("cp /bin/bash own; chmod 6755 own; ./own -p -c 'id -u'")).toBe("1000");
    expect(
      await shell(
        "su -c id </dev/null 2>&1; sudo -n id 2>&1; mount -t tmpfs x /mnt 2>&1; unshare -U id 2>&1; chroot / id 2>&1",
      ),
    ).not.toMatch(/uid=0/);
    expect(await shell("mknod disk b 8 0; dd if=/dev/kmsg; dd if=/dev/mem count=1")).toMatch(
      /not permitted|denied|No such file/,
    );
  });

  test("a user namespace has no rights outside of it", async () => {
    const asRoot = (code: string, flags = "-Ur"): Promise<string> => shell(`unshare ${flags} bash -c '${code}'`);
    expect(await asRoot("id -u")).toBe("0");
    expect(await asRoot("kill -9 1; kill -STOP 1; echo x > /etc/passwd; chown 0 /etc/passwd")).toMatch(
      /^(.*(not permitted|denied)\n?){4}$/i,
    );
    expect(await asRoot("mount -o remount,rw /usr; touch /usr/new", "-Urm")).toMatch(/denied|read-only/i);
    expect(await asRoot("mount --bind /tmp /etc && touch /etc/new", "-Urm")).toBe("");
    expect(await shell("rm /tmp/new; ls /etc/new")).toMatch(/No such file/);
    expect(await asRoot("ulimit -Hu 100000")).toMatch(/not permitted/);
    expect(await asRoot("date -s 2000-01-01 > /dev/null")).toMatch(/not permitted/);
    await handle.ping();
  });

  test("there is only the loopback interface", async () => {
    const interfaces = python("import socket\nprint([name for _, name in socket.if_nameindex()])");
    expect((await run(handle, interfaces)).stdout.trim()).toBe("['lo']");
    const reach =
      "import socket\ns = socket.socket()\ns.settimeout(3)\nprint(s.connect_ex(('1.1.1.1', 80)) != 0, s.connect_ex(('169.254.169.254', 80)) != 0)";
    expect((await run(handle, python(reach))).stdout.trim()).toBe("True True");
    // The proxy is the only way out of a sandbox with a policy, too.
    const proxied = await fixture.acquire({ network: "open" });
    expect((await run(proxied, interfaces)).stdout.trim()).toBe("['lo']");
    expect((await run(proxied, python(reach))).stdout.trim()).toBe("True True");
    await proxied.destroy();
  });

  test("an image from a client stays in the image folders", async () => {
    const images = await fixture.folder();
    const outside = await fixture.folder();
    await mkdir(join(outside, "root"));
    await writeFile(join(outside, "secret.tar"), "");
    await symlink(outside, join(images, "link"));
    await symlink("/", join(images, "slash"));
    const { backend, close } = await openGvisor(engine, { imageDirectories: [images] });
    const names = [
      "dir:/",
      "dir:/etc",
      `dir:${images}`,
      `dir:${images}/../${outside.split("/").at(-1)}/root`,
      `dir:${images}/link/root`,
      `dir:${images}/slash`,
      `dir:${images}/missing`,
      `tar:${outside}/secret.tar`,
      `tar:${images}/link/secret.tar`,
      `oci:${images}/link:latest`,
      "oci:/etc:latest",
      "dir:relative",
      "dir:",
      "docker:--privileged",
      "HOST",
      "",
      "file:///etc",
      "dir:\0/etc",
    ];
    for (const image of names) {
      const request = { sandboxId: "x".repeat(8), spec: { image, env: {}, resources: {}, network: "none" as const } };
      expect([image, await errorCode(backend.acquire(request))]).toEqual([
        image,
        expect.stringMatching(/^(permission_denied|bad_request)$/),
      ]);
    }
    await close();
  });

  test("two sandboxes share no file, and the host keeps none of theirs", async () => {
    await shell("echo mine > /workspace/mine; echo mine > /tmp/mine; echo mine > /var/tmp/mine");
    const other = await fixture.acquire();
    for (const path of ["/workspace/mine", "/tmp/mine", "/var/tmp/mine"]) {
      expect(await errorCode(readText(other, path))).toBe("file_not_found");
    }
    await other.destroy();
  });
});
