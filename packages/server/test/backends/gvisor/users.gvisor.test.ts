import { execFileSync, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { beforeAll, expect, test, type TestContext } from "vitest";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import { captureWorkspace } from "../../../src/manager/snapshots/portable/capture-workspace.ts";
import { archivePath, unpackWorkspace } from "../../../src/manager/snapshots/portable/unpack-workspace.ts";
import { bash, errorCode, python, readText, run, start } from "../contract/programs.ts";
import { makeDebianRoot, whyNoDebianRoot } from "./support/debian-root.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";
import { HIDDEN } from "./support/hidden-paths.ts";
import { openGvisor } from "./support/open-backend.ts";

describeGvisor("users", (engine) => {
  let images = "";
  const fixture = new GvisorFixture(engine, async () => {
    images = await fixture.folder();
    return { imageDirectories: [images], rootInside: true };
  });
  const flags = spawnSync(engine.path, ["flags"], { encoding: "utf8" });
  const hasSetUserId = `${flags.stdout}${flags.stderr}`.includes("-allow-suid");
  let handle: SandboxHandle;
  beforeAll(async () => {
    handle = await fixture.acquire();
  });
  const shell = async (code: string, user = "root", where = handle): Promise<string> => {
    const { stdout, stderr } = await run(where, bash(code), { user });
    return (stdout + stderr).trim();
  };

  test("a program runs as the given user, and by default as the sandbox's user", async () => {
    expect(await shell("echo $(id -u):$(id -g) $HOME $USER $LOGNAME $(pwd)")).toBe("0:0 / root root /workspace");
    expect(await shell("echo $(id -u):$(id -g) $HOME $USER", "nobody")).toBe("65534:65534 / nobody");
    expect(await shell("id -u; id -g", "4242:77")).toBe("4242\n77");
    const { stdout } = await run(handle, bash("echo $(id -u) $HOME $USER $PATH"));
    expect(stdout).toMatch(/^1000 \/workspace user \/workspace\/\.local\/bin:/);
    expect(await shell("echo $PATH")).not.toContain("workspace");
    await expect(shell("id", "nope")).rejects.toMatchObject({
      code: "bad_request",
      message: 'The sandbox has no user "nope".',
      hint: expect.stringContaining("root, user, nobody") as string,
    });
  });

  test("a user that root added inside is known at once, with its groups", async () => {
    await shell("echo added:x:2000:2000::/srv:/bin/bash >> /etc/passwd; echo more:x:2001:user,added >> /etc/group");
    expect(await shell("echo $(id -u) $(id -G) $HOME", "added")).toBe("2000 2000 2001 /srv");
    expect(await shell("echo $(id -G)", "user")).toBe("1000 2001");
  });

  test("root changes the system inside, and nothing of the host", async () => {
    const agentFolder = dirname(`${fixture.opened.runDirectory.path}/../../cache/placed-agents/x`);
    const rootFolder = `${fixture.opened.runDirectory.path}/../../cache/root-filesystems`;
    const state = (): string =>
      execFileSync("find", [agentFolder, rootFolder, "-printf", "%p %s %m %U %T@ %i\n"], { encoding: "utf8" });
    const before = state();
    expect(await shell("echo changed > /etc/profile; chown 1000 /etc/services; cat /etc/profile")).toBe("changed");
    // runsc of 2024 would truncate the host's file for the second, and write to it after the third.
    const attempts = [
      "echo x >> /.sandboxer/sandboxer-agent",
      "echo x > /.sandboxer/sandboxer-agent",
      "unshare -Urm sh -c 'mount -o remount,rw /.sandboxer; echo x > /.sandboxer/sandboxer-agent; touch /.sandboxer/new'",
      "unshare -Urm sh -c 'mount -o remount,bind,rw /.sandboxer; touch /.sandboxer/new'",
      "unshare -Urm sh -c 'mount --bind -o rw /.sandboxer /mnt; touch /mnt/new; rm -f /mnt/sandboxer-agent'",
      "unshare -Urm sh -c 'mount -o remount,rw /usr; touch /usr/sandboxer-test-file'",
      "chmod 777 /.sandboxer/sandboxer-agent",
      "chown 1000 /.sandboxer/sandboxer-agent",
      "mv /.sandboxer/sandboxer-agent /.sandboxer/old",
      "touch /usr/sandboxer-test-file",
      'setfattr -n user.a -v b /.sandboxer/sandboxer-agent || python3 -c \'import os; os.setxattr("/.sandboxer/sandboxer-agent", "user.a", b"b")\'',
    ];
    for (const attempt of attempts)
      expect([attempt, await shell(attempt)]).toEqual([
        attempt,
        expect.stringMatching(/read-only|not permitted|denied|not supported/i),
      ]);
    expect(state()).toBe(before);
    expect(() => execFileSync("stat", ["/usr/sandboxer-test-file"], { stdio: "ignore" })).toThrow();
    await handle.ping();
  });

  test("root sees nothing of the host, and has no rights over its devices, clocks and networks", async () => {
    expect(
      await shell(`for f in ${HIDDEN.join(" ")}; do [ -e $f ] && echo "$f is there"; done; ls -A /home /mnt /opt`),
    ).toBe("/home:\n\n/mnt:\n\n/opt:");
    expect(await shell("mknod /tmp/disk b 8 0; dd if=/tmp/disk count=1; rm -f /tmp/disk")).toMatch(
      /No such device|not permitted|denied/,
    );
    expect(await shell("mount -t tmpfs x /mnt; unshare -m true; hostname x; date -s 2000-01-01 > /dev/null")).toMatch(
      /^(.*(not permitted|denied|must be root|dmesg).*\n?){4,6}$/,
    );
    expect(await shell("ulimit -Hu 100000; ulimit -Hf unlimited; ulimit -Hn 1000000")).toMatch(
      /^(.*not permitted\n?){3}$/,
    );
    expect(
      (
        await run(handle, python("import socket\nprint([name for _, name in socket.if_nameindex()])"), { user: "root" })
      ).stdout.trim(),
    ).toBe("['lo']");
    const rights = await shell("grep CapEff /proc/self/status | cut -f2");
    // CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_NET_ADMIN, CAP_SYS_RESOURCE, CAP_SYS_BOOT, CAP_SYS_TIME
    for (const number of [21n, 19n, 16n, 17n, 12n, 24n, 22n, 25n])
      expect((BigInt(`0x${rights}`) >> number) & 1n).toBe(0n);
  });

  test("root cannot read, trace or impersonate the agent", async () => {
    const own = await fixture.acquire();
    const trace =
      "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())";
    expect((await run(own, python(trace), { user: "root" })).stdout.trim()).toMatch(/^-1 (1|3|13)$/);
    // The engine of 2024 gives root the agent's pipes, and so the rights of the agent over its own sandbox.
    const pipes = hasSetUserId ? ["/proc/1/fd/0", "/proc/1/fd/1"] : [];
    for (const path of ["/proc/1/mem", ...pipes]) {
      for (const code of [`cat ${path}`, `echo x > ${path}`, `unshare -Ur sh -c 'cat ${path}'`]) {
        expect([code, await shell(code, "root", own)]).toEqual([code, expect.stringMatching(/denied|not permitted/)]);
      }
    }
    await own.ping();
    await own.destroy();
  });

  test("the process of root that listens on a port is named", async () => {
    const server = "import socket, time\ns = socket.create_server(('0.0.0.0', 8077))\ntime.sleep(600)";
    await start(handle, python(server), { user: "root" });
    const process = { pid: expect.any(Number) as number, command: expect.stringContaining("8077") as string };
    await expect
      .poll(async () => handle.listeningPorts?.())
      .toContainEqual(expect.objectContaining({ port: 8077, address: "0.0.0.0", process }));
  });

  test("a fork bomb of root stops at the limit", async () => {
    const own = await fixture.acquire({ resources: { processes: 32 } });
    const bomb =
      "import os, time\nfor made in range(200):\n  try:\n    if os.fork() == 0: time.sleep(60)\n  except OSError: break\nprint(made, flush=True)\nos.killpg(0, 9)";
    expect(Number((await run(own, python(bomb), { user: "root" })).stdout)).toBeLessThan(33);
    await own.ping();
    await own.destroy();
  });

  test("root keeps its processes, users and rights across a checkpoint", async () => {
    const own = await fixture.acquire();
    await shell("echo added:x:2000:2000::/srv:/bin/bash >> /etc/passwd", "root", own);
    await start(own, bash("while true; do id -u > /root-lives; sleep 0.1; done"), { user: "root" });
    const copy = await fixture.restore(await fixture.save(own, false));
    await own.destroy();
    await copy.rawFiles?.remove("/root-lives").catch(() => {});
    await expect.poll(() => readText(copy, "/root-lives").catch(() => "")).toBe("0\n");
    expect(await shell("id -u", "added", copy)).toBe("2000");
    expect(await shell("chown 2000 /root-lives && stat -c %u /etc/passwd", "root", copy)).toBe("0");
    await copy.destroy();
  });

  test("root can end PID 1 and so its own sandbox, which is reported", async () => {
    const own = await fixture.acquire();
    await errorCode(run(own, bash("kill -9 1"), { user: "root" }));
    expect(await own.ended).toEqual({
      reason: "crashed",
      message: expect.stringContaining("programs that run as root inside can do that") as string,
    });
    // A stopped agent answers nothing, and can still be destroyed.
    const stopped = await fixture.acquire();
    await start(stopped, bash("kill -STOP 1"), { user: "root" }).catch(() => {});
    await stopped.destroy();
    expect(await stopped.ended).toMatchObject({ reason: "destroyed" });
    await handle.ping();
  });

  test("a server that does not allow root refuses it by name and by number", async () => {
    const { backend, close } = await openGvisor(engine, { rootInside: false, imageDirectories: [images] });
    const strict = await backend.acquire({ sandboxId: "strict-1", spec: { env: {}, resources: {}, network: "none" } });
    for (const user of ["root", "0", "root:nogroup", "0:1000"]) {
      await expect(run(strict, ["id"], { user })).rejects.toMatchObject({ code: "permission_denied" });
    }
    expect(await shell("id -u; grep CapBnd /proc/self/status | cut -f2", "nobody", strict)).toMatch(/^65534\n/);
    const asRoot = { sandboxId: "strict-2", spec: { user: "root", env: {}, resources: {}, network: "none" as const } };
    expect(await errorCode(backend.acquire(asRoot))).toBe("permission_denied");
    await close();
  });

  const missing = whyNoDebianRoot();
  const needDebian = ({ skip }: TestContext): void => skip(missing !== undefined, missing);
  test("a Debian image has its users, homes and packages", async (context) => {
    needDebian(context);
    makeDebianRoot(join(images, "debian"));
    const debian = await fixture.acquire({ image: `dir:${images}/debian`, user: "debian" });
    const { stdout } = await run(debian, bash("echo $(id -u) $(id -G) $HOME $(pwd)"));
    expect(stdout.trim()).toBe("1500 1500 4 27 /home/debian /home/debian");
    // Files are the user's own, and so is the folder of portable captures.
    await debian.files.write("/home/debian/mine", Buffer.from("1"));
    expect(await debian.files.stat("/home/debian/mine")).toMatchObject({ uid: 1500, gid: 1500 });
    expect(await errorCode(debian.files.write("/etc/mine", Buffer.from("1")))).toBe("permission_denied");
    const { backend } = fixture;
    const capture = { backend, handle: debian, diskBytes: undefined };
    const captured = await captureWorkspace(capture, await fixture.folder(), {});
    expect(captured.requirements).toMatchObject({ portable: { folder: "/home/debian", files: 1 } });
    // On another backend it is in the working folder there, and belongs to its new user.
    await unpackWorkspace(backend, handle, archivePath(captured), {});
    expect(await handle.files.stat("/workspace/mine")).toMatchObject({ uid: 1000, gid: 1000 });

    // apt and dpkg close every possible descriptor, one by one.
    const install = "ulimit -n 1024; apt-get -q update && apt-get -q install -y hello-users";
    const installed = await shell(install, "root", debian);
    expect(installed).toContain("Setting up hello-users (1.0)");
    expect(
      await shell("stat -c '%u:%G %a' /usr/share/hello-users/file; dpkg-query -W hello-users", "root", debian),
    ).toBe("0:hello 2750\nhello-users\t1.0");
    expect(await shell("ulimit -n 1024; useradd -m -G hello second && id -nG second", "root", debian)).toBe(
      "second hello",
    );
    expect(await shell("cat /usr/share/hello-users/file; pwd", "second", debian)).toContain("hello");

    // sudo and su need set-user-ID programs, which the engine of 2024 does not support.
    const raised = await shell("su root -c 'id -u; grep CapEff /proc/self/status'", "debian", debian);
    if (hasSetUserId) expect(raised).toMatch(/^0\nCapEff:\t00000000a80405fb$/);
    else expect(raised).not.toMatch(/^0\n/);
    const rule = await shell("cat /etc/sudoers.d/sandboxer", "root", debian);
    expect(rule).toMatch(hasSetUserId ? /^debian ALL=\(ALL:ALL\) NOPASSWD: ALL$/ : /No such file/);

    const copy = await fixture.restore(await fixture.save(debian, false), {
      image: `dir:${images}/debian`,
      user: "debian",
    });
    await debian.destroy();
    const again = await shell("su root -c 'id -u'", "debian", copy);
    if (hasSetUserId) expect(again).toBe("0");
    await copy.files.write("/home/debian/later", Buffer.from("2"));
    expect(await copy.files.stat("/home/debian/later")).toMatchObject({ uid: 1500 });
    await copy.destroy();

    const unnamed = await fixture.acquire({ image: `dir:${images}/debian` });
    expect(await shell("id -un; cd; pwd; echo ~", "1000", unnamed)).toBe("user\n/workspace\n/workspace");
    const wrong = fixture.acquire({ image: `dir:${images}/debian`, user: "nope" });
    await expect(wrong).rejects.toMatchObject({ code: "bad_request", message: 'The sandbox has no user "nope".' });
  });
});
