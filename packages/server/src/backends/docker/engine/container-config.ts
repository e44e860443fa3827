/** The part of the engine's `ContainerCreate` body that is used. */
export interface ContainerConfig {
  readonly Image: string;
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly User: string;
  readonly WorkingDir: string;
  readonly Hostname: string;
  readonly Env: readonly string[];
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
  readonly OpenStdin: boolean;
  readonly StdinOnce: boolean;
  readonly Tty: boolean;
  readonly AttachStdin: boolean;
  readonly AttachStdout: boolean;
  readonly AttachStderr: boolean;
  readonly HostConfig: HostConfig;
}

interface HostConfig {
  readonly Runtime?: string;
  readonly NetworkMode: string;
  readonly CapDrop: readonly string[];
  readonly CapAdd: readonly string[];
  readonly SecurityOpt: readonly string[];
  readonly LogConfig: { readonly Type: string };
  readonly Memory: number;
  readonly MemorySwap: number;
  readonly NanoCpus: number;
  readonly PidsLimit: number;
  readonly Ulimits: readonly { readonly Name: string; readonly Soft: number; readonly Hard: number }[];
  readonly StorageOpt?: Readonly<Record<string, string>>;
  readonly Mounts: readonly {
    readonly Type: "bind";
    readonly Source: string;
    readonly Target: string;
    readonly ReadOnly: boolean;
  }[];
}
