import {
  type ObservedContainer,
  type ObservedPod,
  type ObservedSandbox,
  type Pod,
  podUid,
} from '../../src/pods/index.ts';

const second = 1_000_000_000n;
/** The time to which all times of the built statuses are relative: 2026-01-01T00:00:00Z. */
const start = 1_767_225_600n * second;

export function aSandbox(over: Partial<ObservedSandbox> = {}): ObservedSandbox {
  return {
    id: 'sandbox-0',
    attempt: 0,
    state: 'ready',
    createdAtNs: start,
    network: 'pod',
    ips: ['10.1.2.3'],
    runtimeHandler: '',
    ...over,
  };
}

/** Builds an instance of a container; one with a higher restart count was created later. */
export function anInstance(over: Partial<ObservedContainer> = {}): ObservedContainer {
  const restartCount = over.restartCount ?? 0;
  const name = over.name ?? 'main';
  const createdAtNs = start + BigInt(restartCount) * 60n * second;
  const isStarted = over.state !== 'created';
  return {
    id: `${name}-${restartCount}`,
    runtimeName: 'containerd',
    name,
    sandboxId: 'sandbox-0',
    state: 'running',
    createdAtNs,
    startedAtNs: isStarted ? createdAtNs + second : 0n,
    finishedAtNs: over.state === 'exited' ? createdAtNs + 5n * second : 0n,
    exitCode: 0,
    reason: over.state === 'exited' ? ((over.exitCode ?? 0) === 0 ? 'Completed' : 'Error') : '',
    message: '',
    image: 'example/web:1',
    imageRef: 'example/web@sha256:aa',
    hash: '',
    restartCount,
    logPath: '',
    annotations: {},
    labels: {},
    resources: undefined,
    user: undefined,
    ...over,
  };
}

/**
 * Builds the runtime status of the pod with instances in any order and, by default, one ready
 * sandbox.
 */
export function observe(
  pod: Pod,
  containers: readonly ObservedContainer[] = [],
  sandboxes: readonly ObservedSandbox[] = [aSandbox()],
): ObservedPod {
  const { uid, name, namespace } = pod.metadata;
  const newestFirst = containers.toSorted((a, b) => Number(b.createdAtNs - a.createdAtNs));
  const ready = sandboxes.find(({ state }) => state === 'ready');
  return { uid: podUid(uid), name, namespace, ips: ready?.ips ?? [], sandboxes, containers: newestFirst };
}
