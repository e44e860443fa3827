import { isAbsolute, join } from "node:path";
import type { ConfigSources, SettingName } from "./config-settings.ts";

export function defaultTexts(sources: ConfigSources): Partial<Record<SettingName, string>> {
  const { env, homeDirectory } = sources;
  return {
    host: "127.0.0.1",
    port: "8080",
    backend: "gvisor",
    platform: "auto",
    fetchEngines: "on",
    image: "host",
    defaultRegistry: "docker.io",
    registries: "",
    registryMirrors: "",
    insecureRegistries: "",
    registrySecrets: "",
    layerCacheMb: "20480",
    maxImageMb: "20480",
    dockerConfig: join(homeDirectory, ".docker"),
    requirePeerCert: "false",
    serverLabels: "",
    requireStore: "false",
    maxPreviews: "1000",
    wakeTimeoutMs: "1m",
    network: "none",
    networkAllow: "",
    networkNameservers: "",
    allowNetwork: "false",
    rootInside: "gvisor",
    dockerHost: "unix:///var/run/docker.sock",
    dockerImage: "node:24-bookworm",
    dockerNetwork: "bridge",
    dockerMounts: "",
    dataDirectory: join(baseDirectory(env["XDG_DATA_HOME"], join(homeDirectory, ".local", "share")), "sandboxer"),
    cacheDirectory: join(baseDirectory(env["XDG_CACHE_HOME"], join(homeDirectory, ".cache")), "sandboxer"),
    profilesDirectory: join(configDirectory(sources), "profiles"),
    repositories: "",
    dozeAfterMs: "5s",
    leaseTtlMs: "15s",
    handoffTimeoutMs: "30s",
    drainTimeoutMs: "10m",
    resumeTtlMs: "7d",
    defaultIdleTimeoutSeconds: "5m",
    keepCheckpoints: "3",
    keepSnapshots: "all",
    collectEveryMs: "6h",
    scrubEvery: "auto",
    scrubRateMb: "20",
    encryptionOldKeys: "",
    requireSealed: "false",
    packCacheMb: "4096",
    imageCacheMb: "2048",
    proveSnapshots: "off",
    maxSandboxes: "100",
    maxResources: "",
    maxTotalMemory: "90%",
    warmPoolMax: "4",
    maxClients: "1000",
    maxMessageBytes: "1048576",
    maxCollectedMb: "256",
    rateLimit: "1000",
    trustedProxies: "",
    bodyTimeoutMs: "30s",
    apiKeys: "",
    console: "on",
    e2b: "on",
    logLevel: "info",
    searchPath: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  };
}

/** The folder of the config file, the user's profiles and the client's contexts. */
export function configDirectory({ env, homeDirectory }: Pick<ConfigSources, "env" | "homeDirectory">): string {
  return join(baseDirectory(env["XDG_CONFIG_HOME"], join(homeDirectory, ".config")), "sandboxer");
}

/** The XDG specification says that relative values are ignored. */
function baseDirectory(fromEnvironment: string | undefined, fallback: string): string {
  return fromEnvironment !== undefined && isAbsolute(fromEnvironment) ? fromEnvironment : fallback;
}
