import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ExtensionBackend } from "../../../src/backends/extension/extension-backend.ts";
import { SaasStubExtension } from "../../../src/backends/saas-stub/saas-stub-extension.ts";
import { testBackend } from "../backend-contract.ts";

const open = async () => {
  const handlesDirectory = await mkdtemp(join(tmpdir(), "sbx-stub-"));
  const backend = new ExtensionBackend(new SaasStubExtension(), { handlesDirectory });
  const close = async (): Promise<void> => {
    await backend.close();
    await rm(handlesDirectory, { recursive: true, force: true });
  };
  return { backend, close };
};

testBackend("saas-stub", open, { runsCommands: false });
