import { errorOfResponse, unreachable } from "@sandboxer/client/transport";

interface SendOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (sentBytes: number) => void;
}

/** Uploads a file. `fetch` reports no upload progress; XMLHttpRequest does. */
export function sendFile(sandboxId: string, path: string, file: File, options: SendOptions): Promise<void> {
  const { signal, onProgress } = options;
  const sent = Promise.withResolvers<void>();
  const request = new XMLHttpRequest();
  const wanted = new URLSearchParams({ path, parents: "true" });
  const address = `/v1/sandboxes/${encodeURIComponent(sandboxId)}/files?${wanted.toString()}`;
  request.open("PUT", address);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.setRequestHeader("sandboxer-relay", "allow");
  request.upload.addEventListener("progress", ({ loaded }) => onProgress(loaded));
  request.addEventListener("load", () => {
    const { status, responseText } = request;
    if (status >= 200 && status < 300) return sent.resolve();
    void errorOfResponse(new Response(responseText, { status })).then(sent.reject);
  });
  request.addEventListener("error", () =>
    sent.reject(unreachable(location.origin, new Error("the connection was lost"))),
  );
  request.addEventListener("abort", () => sent.reject(signal.reason));
  const stop = (): void => request.abort();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) sent.reject(signal.reason);
  else request.send(file);
  return sent.promise.finally(() => signal.removeEventListener("abort", stop));
}
