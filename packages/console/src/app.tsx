import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { ConfirmAction } from "./dialogs/confirm-action.tsx";
import { Dialogs } from "./dialogs/dialogs.tsx";
import { keepDamage } from "./live/damage.ts";
import { connected } from "./live/events.ts";
import { keepOperations } from "./live/operations.ts";
import { keepSandboxes } from "./live/sandboxes.ts";
import { LoginPage } from "./pages/login.tsx";
import { pageAt } from "./pages/pages.tsx";
import { askedForSandbox } from "./pages/sandboxes/new/ask-for-sandbox.ts";
import { Overlays } from "./palette/overlays.tsx";
import { path, subject } from "./router.tsx";
import { refreshServer, server, session, start } from "./session.ts";
import { Shell } from "./shell.tsx";
import { Button } from "./ui/button.tsx";
import { ErrorBox } from "./ui/error-box.tsx";
import { lazy } from "./ui/lazy.tsx";
import { Toasts } from "./ui/toasts.tsx";

const NewSandboxDialog = lazy(
  () => import("./pages/sandboxes/new/new-sandbox-dialog.tsx"),
  (part) => part.NewSandboxDialog,
);

export function App(): JSX.Element {
  return (
    <>
      <Content />
      <Toasts />
    </>
  );
}

function Content(): JSX.Element {
  const { value } = session;
  if (value.state === "starting") return <p class="page-note">Connecting to the server …</p>;
  if (value.state === "logged out") return <LoginPage error={value.error} />;
  if (value.state === "unreachable") {
    return (
      <main class="page page-narrow">
        <ErrorBox error={value.error}>
          <Button kind="primary" onClick={() => void start()}>
            Try again
          </Button>
        </ErrorBox>
      </main>
    );
  }
  return <Live />;
}

/** Follows the server while the user is logged in. */
function Live(): JSX.Element {
  useEffect(() => {
    const end = new AbortController();
    keepSandboxes(end.signal);
    keepOperations(end.signal);
    keepDamage(end.signal);
    const stop = effect(() => {
      if (connected.value) void refreshServer();
    });
    return () => {
      stop();
      end.abort();
    };
  }, []);
  const page = pageAt(path.value);
  return (
    <>
      <Shell section={page.section}>{page.show()}</Shell>
      <Overlays />
      <ConfirmAction />
      <Dialogs />
      {askedForSandbox.value ? <NewSandboxDialog onClose={() => (askedForSandbox.value = false)} /> : null}
    </>
  );
}

effect(() => {
  const { instanceId } = server.value ?? {};
  const parts = [subject.value ?? pageAt(path.value).title, "sandboxer"];
  if (instanceId && subject.value === undefined) parts.push(instanceId);
  document.title = parts.join(" · ");
});
