import { Sandbox, type BackendRecord, type OperationRecord, type SandboxSettings } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ActionDialog } from "../../../dialogs/action-dialog.tsx";
import { NameField, SelectField, TextField, type Choice } from "../../../dialogs/fields.tsx";
import { LabelFields, labelsOfRows, type LabelRows } from "../../../dialogs/label-fields.tsx";
import { useLongCall } from "../../../dialogs/use-long-call.ts";
import { rememberToken } from "../../../live/created-token.ts";
import { noteSandbox } from "../../../live/sandboxes.ts";
import { useLoaded } from "../../../live/use-loaded.ts";
import { navigate } from "../../../router.tsx";
import { client, server } from "../../../session.ts";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { creationSpellings, EMPTY_DRAFT, settingsOf, type Draft } from "./settings.ts";

/** Creates a sandbox, and opens its page. */
export function NewSandboxDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const [labels, setLabels] = useState<LabelRows>([]);
  const choices = useLoaded(
    async (signal) => Promise.all([client.profiles({ signal }), client.backends({ signal })]),
    [],
  );
  const [profiles, backends] = choices.value ?? [[], []];
  const call = useLongCall<Sandbox>("New sandbox");
  const asked: Draft = { ...draft, labels: labelsOfRows(labels) };
  const change = (part: Partial<Draft>): void => setDraft({ ...draft, ...part });
  const submit = (): void =>
    call.run(async (onProgress) => {
      const made = await make(settingsOf(asked), onProgress);
      noteSandbox(made.record);
      if (made.token !== undefined) rememberToken(made.id, made.token);
      onClose();
      navigate(`/sandboxes/${encodeURIComponent(made.id)}`);
      return made;
    });
  return (
    <ActionDialog
      title="New sandbox"
      submit="Create"
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => creationSpellings(asked)}
      done={() => "The sandbox was created."}
    >
      {choices.error === undefined ? null : <ErrorBox error={choices.error} />}
      <NameField label="Name" value={draft.name} onChange={(name) => change({ name })} hint="Optional." />
      <SelectField
        label="Profile"
        value={draft.profile}
        choices={[
          { value: "", text: "None" },
          ...profiles.map(({ name, description }) => ({
            value: name,
            text: description ? `${name}: ${description}` : name,
          })),
        ]}
        onChange={(profile) => change({ profile })}
      />
      <SelectField
        label="Backend"
        value={draft.backend}
        choices={backendChoices(backends)}
        onChange={(backend) => change({ backend })}
      />
      <TextField
        label="Image"
        value={draft.image}
        onChange={(image) => change({ image })}
        hint="Such as python:3.12-slim. Empty: the backend's default."
      />
      <SelectField
        label="Network"
        value={draft.network}
        choices={[
          { value: "", text: "Default of the profile or server" },
          { value: "none", text: "None" },
          { value: "open", text: "Open: the internet, through the server" },
          { value: "list", text: "Only the hosts that I name" },
        ]}
        onChange={(network) => change({ network: network as Draft["network"] })}
      />
      {draft.network === "list" ? (
        <TextField
          label="Allowed hosts"
          value={draft.allow}
          onChange={(allow) => change({ allow })}
          placeholder="pypi.org, *.pythonhosted.org"
        />
      ) : null}
      <details>
        <summary>Key, limits, time, labels</summary>
        <div class="stack new-sandbox-more">
          <TextField
            label="Key"
            value={draft.key}
            onChange={(key) => change({ key })}
            hint="If a sandbox already has this key, it is used instead."
          />
          <div class="new-sandbox-numbers">
            <TextField label="CPUs" value={draft.cpus} onChange={(cpus) => change({ cpus })} inputMode="decimal" />
            <TextField
              label="Memory, MB"
              value={draft.memoryMb}
              onChange={(memoryMb) => change({ memoryMb })}
              inputMode="numeric"
            />
            <TextField
              label="Disk, MB"
              value={draft.diskMb}
              onChange={(diskMb) => change({ diskMb })}
              inputMode="numeric"
            />
          </div>
          <div class="new-sandbox-numbers">
            <TextField label="Lifetime" value={draft.ttl} onChange={(ttl) => change({ ttl })} placeholder="4h" />
            <TextField
              label="Idle timeout"
              value={draft.idleTimeout}
              onChange={(idleTimeout) => change({ idleTimeout })}
              placeholder="15m"
            />
          </div>
          <LabelFields rows={labels} onChange={setLabels} />
        </div>
      </details>
    </ActionDialog>
  );
}

function make(settings: SandboxSettings, onProgress: (operation: OperationRecord) => void): Promise<Sandbox> {
  const options = { client, ...settings, onProgress };
  return settings.key === undefined ? Sandbox.create(options) : Sandbox.acquire({ ...options, key: settings.key });
}

function backendChoices(backends: readonly BackendRecord[]): Choice[] {
  const usual = server.value?.defaultBackend ?? "";
  return [
    { value: "", text: `Profile's setting, or ${usual}` },
    ...backends.map(({ name, ok, summary }) => ({
      value: name,
      text: ok ? name : `${name}: ${summary}`,
      disabled: !ok,
    })),
  ];
}
