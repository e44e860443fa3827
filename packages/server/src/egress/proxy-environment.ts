/** The port of the proxy inside, unless a program has it. */
export const PROXY_PORT = 3128;

const NOT_PROXIED = "localhost,127.0.0.1,::1";

/** The variables by which programs find the proxy. Programs disagree about upper and lower case. */
export function proxyEnvironment(port: number): Readonly<Record<string, string>> {
  const url = `http://127.0.0.1:${port}`;
  const values = { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: NOT_PROXIED };
  const lower = Object.entries(values).map(([name, value]) => [name.toLowerCase(), value]);
  // Node's own fetch reads the variables only if this one is set.
  return { ...values, ...Object.fromEntries(lower), NODE_USE_ENV_PROXY: "1" };
}
