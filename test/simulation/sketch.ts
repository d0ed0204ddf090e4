/** The behaviour of a simulated container's program; it does not depend on the image. */
export interface Behaviour {
  /** Runs permanently unless given. */
  readonly runMs?: number;
  readonly exitCode?: number;
  /** Whether it exits immediately on the stop signal, never, or after a delay. */
  readonly onTerm?: 'die' | 'ignore' | number;
  /** Attempts before this one exit early with a failure. */
  readonly failsBefore?: number;
  /** The exit code of those attempts: 1 unless given. */
  readonly failsWith?: number;
}

/** A hook: a command with its result, one that never returns, or a sleep. */
export type HookSketch =
  | { readonly kind: 'exec'; readonly takesMs: number; readonly exitCode: number }
  | { readonly kind: 'hangs' }
  | { readonly kind: 'sleep'; readonly seconds: number };

/**
 * The responses of an instance to a probe: success each time, except for the given requests.
 * Counted from one.
 */
export interface ProbeSketch {
  readonly way: 'exec' | 'tcp';
  readonly periodSeconds: number;
  readonly failureThreshold: number;
  readonly initialDelaySeconds: number;
  /** The kind of failure: a late response is one, too. */
  readonly badly: 'fails' | 'late';
  readonly failsFrom: number;
  readonly failsTo: number;
  /** Only attempts before this one fail. */
  readonly untilAttempt: number;
}

export const probeTypes = ['liveness', 'readiness', 'startup'] as const;
export type ProbeType = (typeof probeTypes)[number];

export interface RestartRuleSketch {
  readonly action: 'Restart' | 'RestartAllContainers';
  readonly operator: 'In' | 'NotIn';
  readonly values: readonly number[];
}

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** The requests and limits of a container. */
export interface ContainerSize {
  readonly milliCpu: number;
  readonly mebibytes: number;
}

export interface ContainerSketch extends Behaviour {
  readonly name: string;
  readonly image: string;
  readonly pullPolicy?: 'Always' | 'Never';
  /** The container's own restart policy; Always makes an init container a sidecar. */
  readonly restartPolicy?: RestartPolicy;
  readonly restartRules?: readonly RestartRuleSketch[];
  readonly postStart?: HookSketch;
  readonly preStop?: HookSketch;
  readonly probes?: { readonly [type in ProbeType]?: ProbeSketch };
  /** How many devices of a plugin it requests. */
  readonly devices?: number;
  /** No resource requests unless given. */
  readonly size?: ContainerSize;
  /** A resource whose change requires a container restart. */
  readonly restartsForSize?: 'cpu' | 'memory';
}

export interface PodSketch {
  readonly name: string;
  readonly revision: number;
  /** From a manifest unless given. */
  readonly source?: 'api';
  readonly restartPolicy: RestartPolicy;
  readonly graceSeconds: number;
  /** None unless given. */
  readonly priority?: number | undefined;
  /** The active deadline; none unless given. */
  readonly deadlineSeconds?: number | undefined;
  readonly init: readonly ContainerSketch[];
  readonly containers: readonly ContainerSketch[];
  /** Whether the node may lack the capacity for it. */
  readonly mayBeRefused?: true;
  /** Added to the pod while it runs. */
  readonly ephemeral?: readonly ContainerSketch[];
}

export const images = {
  present: 'localhost/app:1',
  pulled: 'registry.example/app:1',
  slow: 'registry.example/slow:1',
  flaky: 'registry.example/flaky:1',
  missing: 'registry.example/missing:1',
} as const;

export function isSidecar({ restartPolicy }: ContainerSketch): boolean {
  return restartPolicy === 'Always';
}

export function sidecarsOf({ init }: PodSketch): readonly ContainerSketch[] {
  return init.filter(isSidecar);
}

/** The containers that must run for the pod to be ready. */
export function servingOf(sketch: PodSketch): readonly ContainerSketch[] {
  return [...sidecarsOf(sketch), ...sketch.containers];
}

export function everyContainer({ init, containers, ephemeral = [] }: PodSketch): readonly ContainerSketch[] {
  return [...init, ...containers, ...ephemeral];
}

export function containerOf(sketch: PodSketch | undefined, name: string): ContainerSketch | undefined {
  return sketch === undefined ? undefined : everyContainer(sketch).find((each) => each.name === name);
}

/** The restart decision of the manifest for a container that has exited like this. */
export function afterExit(
  sketch: PodSketch,
  container: ContainerSketch,
  exitCode: number,
): 'restarts' | 'restarts-all' | 'stays-ended' {
  const rule = container.restartRules?.find(
    ({ operator, values }) => values.includes(exitCode) === (operator === 'In'),
  );
  if (rule !== undefined) return rule.action === 'Restart' ? 'restarts' : 'restarts-all';
  const policy = policyOf(sketch, container);
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0) ? 'restarts' : 'stays-ended';
}

/**
 * A plain init container has completed when it has succeeded, whatever restart policy the pod has.
 */
export function policyOf(sketch: PodSketch, container: ContainerSketch): RestartPolicy {
  const policy = container.restartPolicy ?? sketch.restartPolicy;
  const isPlainInit = sketch.init.includes(container) && !isSidecar(container);
  return isPlainInit && policy === 'Always' ? 'OnFailure' : policy;
}
