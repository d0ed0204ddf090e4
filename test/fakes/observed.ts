import type { Container } from '../../src/kinds/index.ts';
import {
  type ObservedContainer,
  type ObservedPod,
  type ObservedSandbox,
  podUid,
} from '../../src/pods/index.ts';
import { specHash } from '../../src/runtime/containers/spec-hash.ts';

/** Builds a ready sandbox with an IP address. */
export function aSandbox(parts: Partial<ObservedSandbox> = {}): ObservedSandbox {
  return {
    id: 'sandbox-0',
    attempt: 0,
    state: 'ready',
    createdAtNs: 1n,
    network: 'pod',
    ips: ['10.0.0.2'],
    runtimeHandler: '',
    ...parts,
  };
}

/**
 * Builds a running instance of the container in the first sandbox, created from the current spec.
 */
export function anInstance(container: Container, parts: Partial<ObservedContainer> = {}): ObservedContainer {
  return {
    id: `${container.name}-0`,
    runtimeName: 'containerd',
    name: container.name,
    sandboxId: 'sandbox-0',
    state: 'running',
    createdAtNs: 1n,
    startedAtNs: 2n,
    finishedAtNs: 0n,
    exitCode: 0,
    reason: '',
    message: '',
    image: container.image ?? '',
    imageRef: `${container.image ?? ''}@sha256:0`,
    hash: specHash(container),
    restartCount: 0,
    logPath: '',
    annotations: {},
    labels: {},
    resources: undefined,
    user: undefined,
    ...parts,
  };
}

/**
 * Builds the runtime status of the pod of `aPod`: one ready sandbox and no containers by default.
 */
export function anObservedPod(parts: Partial<ObservedPod> = {}): ObservedPod {
  const sandboxes = parts.sandboxes ?? [aSandbox()];
  const ips = sandboxes.find(({ state }) => state === 'ready')?.ips ?? [];
  return {
    uid: podUid('uid-1'),
    name: 'web',
    namespace: 'default',
    ips,
    sandboxes,
    containers: [],
    ...parts,
  };
}
