import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { Capabilities, SandboxBackend } from "../backends/backend.ts";
import type { FateOf } from "../backends/instance-folder.ts";
import { LazyBackend, type BackendProvider } from "../backends/lazy-backend.ts";
import { SHELL_FILES } from "../backends/traits.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import { dockerDefaults, openIn, type PreparedBackend } from "./backends.ts";
import type { ServerConfig } from "./config.ts";
import { daytonaProvider } from "./daytona.ts";
import { dockerProvider } from "./docker.ts";

const RECORDS_ONLY: Capabilities = {
  snapshot: "metadata",
  filesystemSnapshot: false,
  pty: false,
  files: false,
  connect: false,
  network: false,
  limits: false,
  selfHosted: false,
  outlivesServer: true,
};

/** The bundled backends besides the default one. Each is loaded when it is first used. */
function builtIn(config: ServerConfig, secrets: SecretResolver, fateOf: FateOf): readonly BackendProvider[] {
  const handlesDirectory = join(config.dataDirectory, "handles");
  return [
    dockerProvider(config, dockerDefaults(config), fateOf),
    daytonaProvider(config, secrets, fateOf),
    {
      name: "compose-ssh",
      capabilities: {
        ...RECORDS_ONLY,
        snapshot: "filesystem",
        filesystemSnapshot: true,
        files: true,
        network: true,
        selfHosted: true,
      },
      capturesWorkspace: true,
      keeps: SHELL_FILES,
      refersOutside: true,
      open: async () => {
        const { ComposeSshExtension } = await import("../backends/compose-ssh/compose-ssh-extension.ts");
        const { ExtensionBackend } = await import("../backends/extension/extension-backend.ts");
        const options = { repositoryFolders: config.repositories, temporaryDirectory: tmpdir() };
        return new ExtensionBackend(new ComposeSshExtension(options));
      },
    },
    {
      name: "saas-stub",
      capabilities: RECORDS_ONLY,
      open: async () => {
        const { SaasStubExtension } = await import("../backends/saas-stub/saas-stub-extension.ts");
        const { ExtensionBackend } = await import("../backends/extension/extension-backend.ts");
        return new ExtensionBackend(new SaasStubExtension(), { handlesDirectory: join(handlesDirectory, "saas-stub") });
      },
    },
  ];
}

/** Every backend of a server by name: the default one, the bundled ones, and those of the manifest. */
export async function assembleBackends(
  config: ServerConfig,
  standard: SandboxBackend,
  secrets: SecretResolver,
  fateOf: FateOf,
): Promise<ReadonlyMap<string, SandboxBackend>> {
  const backends = await otherBackends(config, secrets, fateOf);
  return new Map([[standard.name, standard], ...[...backends].filter(([name]) => name !== standard.name)]);
}

/** One of them as the default backend. */
export async function prepareOtherBackend(config: ServerConfig, secrets: SecretResolver): Promise<PreparedBackend> {
  // A backend that recovers leftovers cannot be the one that is looked for.
  const backends = await otherBackends(config, secrets, async () => "held");
  const backend = backends.get(config.backend);
  if (backend === undefined) {
    const known = ["gvisor", "fake", ...backends.keys()].join(", ");
    throw new SandboxerError("bad_request", `There is no backend "${config.backend}".`, {
      hint: `Use one of: ${known}.`,
    });
  }
  return {
    name: backend.name,
    engine: backend.name,
    recover: async () => [],
    open: (instanceId) => openIn(join(config.dataDirectory, "work", instanceId), backend),
  };
}

async function otherBackends(
  config: ServerConfig,
  secrets: SecretResolver,
  fateOf: FateOf,
): Promise<Map<string, SandboxBackend>> {
  const backends = new Map<string, SandboxBackend>();
  for (const provider of builtIn(config, secrets, fateOf)) backends.set(provider.name, new LazyBackend(provider));
  const taken = new Set(["gvisor", "fake", ...backends.keys()]);
  for (const backend of await extensionBackends(config, taken)) backends.set(backend.name, backend);
  return backends;
}

/** Loaded at the start, so that an invalid manifest is reported then. */
async function extensionBackends(config: ServerConfig, taken: ReadonlySet<string>): Promise<readonly SandboxBackend[]> {
  if (config.extensions === undefined) return [];
  const { loadExtensions } = await import("../backends/extension/load-extensions.ts");
  const { ExtensionBackend } = await import("../backends/extension/extension-backend.ts");
  const extensions = await loadExtensions(config.extensions, taken);
  const handlesDirectory = join(config.dataDirectory, "handles");
  return [...extensions].map(
    ([name, extension]) => new ExtensionBackend(extension, { handlesDirectory: join(handlesDirectory, name) }),
  );
}
