/** Responses of a real API server, recorded so that tests do not need the server. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Json = Readonly<Record<string, unknown>>;

/** A recorded response: the created object, or the error. */
export interface RecordedAnswer {
  readonly code: number;
  readonly reason?: string;
  readonly message?: string;
  readonly causes?: readonly Cause[];
  /** The object without fields that vary between runs. */
  readonly object?: Json;
}

export interface Cause {
  readonly reason: string;
  readonly message?: string;
  readonly field?: string;
}

export interface RecordedPod {
  readonly what: string;
  readonly pod: Json;
  readonly answer: RecordedAnswer;
}

export interface RecordedChange extends RecordedPod {
  readonly request: {
    readonly method: 'PATCH' | 'POST';
    /** The subresource of the pod; empty for the pod itself. */
    readonly subresource: string;
    readonly contentType?: string;
    readonly body: unknown;
  };
}

/** Objects that must exist before the recorded pods are created. */
export const surroundings: readonly { readonly path: string; readonly object: Json }[] = [
  {
    path: '/apis/scheduling.k8s.io/v1/priorityclasses',
    object: {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'high' },
      value: 1000,
      preemptionPolicy: 'Never',
    },
  },
  {
    path: '/apis/node.k8s.io/v1/runtimeclasses',
    object: {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'heavy' },
      handler: 'heavy',
      overhead: { podFixed: { cpu: '250m', memory: '120Mi' } },
      scheduling: {
        nodeSelector: { runtime: 'heavy' },
        tolerations: [{ key: 'heavy', operator: 'Exists', effect: 'NoSchedule' }],
      },
    },
  },
  {
    path: '/api/v1/namespaces/default/serviceaccounts',
    object: {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'puller', namespace: 'default' },
      imagePullSecrets: [{ name: 'pull' }],
      automountServiceAccountToken: false,
    },
  },
  {
    path: '/api/v1/nodes',
    object: {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'n1',
        labels: { 'kubernetes.io/os': 'linux', 'topology.kubernetes.io/zone': 'z1' },
      },
      spec: { unschedulable: true },
      status: {
        allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
        capacity: { cpu: '4', memory: '8Gi', pods: '110' },
      },
    },
  },
];

export type Recording = 'refused' | 'accepted' | 'changes';

function fileOf(name: Recording): string {
  return join(import.meta.dirname, `${name}.jsonl`);
}

export function readRecording(name: 'refused' | 'accepted'): readonly RecordedPod[];
export function readRecording(name: 'changes'): readonly RecordedChange[];
export function readRecording(name: Recording): readonly RecordedPod[] {
  const lines = readFileSync(fileOf(name), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

export function writeRecording(name: Recording, recorded: readonly RecordedPod[]): void {
  const lines = recorded.map((each) => `${JSON.stringify(each)}\n`);
  writeFileSync(fileOf(name), lines.join(''));
}

/** The response without fields that vary between runs. */
export function recordable(code: number, body: Json): RecordedAnswer {
  const { reason, message, details } = body as {
    reason?: string;
    message?: string;
    details?: { causes?: RecordedAnswer['causes'] };
  };
  if (code >= 400)
    return {
      code,
      ...(reason ? { reason } : {}),
      ...(message ? { message: steady(message) } : {}),
      ...(details?.causes ? { causes: details.causes.map(steadyCause) } : {}),
    };
  return body['kind'] === 'Pod' ? { code, object: steadyObject(body) } : { code };
}

/**
 * Removes the dump of Go values from an error message; the text before it describes what is not
 * allowed.
 */
function steady(message: string): string {
  return message.replace(/\n[\s\S]*$/, '');
}

function steadyCause({ message, ...cause }: Cause): Cause {
  return { ...cause, ...(message ? { message: steady(message) } : {}) };
}

const volatile = ['uid', 'resourceVersion', 'creationTimestamp', 'managedFields'];

function steadyObject(value: Json): Json {
  const text = JSON.stringify(value, (key, inner) => {
    if (inner === null || key === 'lastTransitionTime') return undefined;
    if (key !== 'metadata') return inner;
    return Object.fromEntries(Object.entries(inner).filter(([name]) => !volatile.includes(name)));
  });
  return JSON.parse(text.replace(/kube-api-access-\w{5}/g, 'kube-api-access-*'));
}
