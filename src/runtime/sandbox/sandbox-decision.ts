import type { ObservedPod, Pod } from '../../pods/index.ts';

export interface SandboxDecision {
  readonly kind: 'keep' | 'create';
  /** Attempt number of the sandbox to keep or to create. */
  readonly attempt: number;
  /** Id of the sandbox to keep or to replace; empty when the pod has none or its network mode has changed. */
  readonly sandboxId: string;
}

/** Decides whether the newest sandbox is kept or a new one must be created. */
export function decideSandbox(pod: Pod, { sandboxes }: ObservedPod): SandboxDecision {
  const newest = sandboxes[0];
  if (newest === undefined) return { kind: 'create', attempt: 0, sandboxId: '' };
  const next = { kind: 'create', attempt: newest.attempt + 1 } as const;
  const ready = sandboxes.filter(({ state }) => state === 'ready').length;
  if (ready > 1 || newest.state !== 'ready') return { ...next, sandboxId: newest.id };
  if (newest.network !== networkOf(pod)) return { ...next, sandboxId: '' };
  // A sandbox with a pod network but without an address is unusable.
  if (newest.network === 'pod' && newest.unaddressed === true) return { ...next, sandboxId: newest.id };
  return { kind: 'keep', attempt: newest.attempt, sandboxId: newest.id };
}

function networkOf(pod: Pod): 'pod' | 'node' {
  return pod.spec.hostNetwork === true ? 'node' : 'pod';
}
