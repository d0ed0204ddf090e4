/** The behaviour of the program in a simulated container; it does not depend on the image. */
export interface Behaviour {
  /** How long the program runs; by default permanently. */
  readonly runMs?: number;
  readonly exitCode?: number;
  /**
   * Whether the program exits immediately on SIGTERM, ignores it, or exits after this many
   * milliseconds.
   */
  readonly onTerm?: 'die' | 'ignore' | number;
  /** Attempts of the container below this number exit early with a failure. */
  readonly failsBefore?: number;
  /** The exit code of the failing attempts; 1 by default. */
  readonly failsWith?: number;
}

/** A lifecycle hook: a command with its result, a command that never returns, or a sleep. */
export type HookSketch =
  | { readonly kind: 'exec'; readonly takesMs: number; readonly exitCode: number }
  | { readonly kind: 'hangs' }
  | { readonly kind: 'sleep'; readonly seconds: number };

/**
 * The responses of a container instance to a probe: success, except for the requests from
 * `failsFrom` to `failsTo`, counted from one.
 */
export interface ProbeSketch {
  readonly way: 'exec' | 'tcp';
  readonly periodSeconds: number;
  readonly failureThreshold: number;
  readonly initialDelaySeconds: number;
  /** How the probe fails: with a failure or with a late response. */
  readonly badly: 'fails' | 'late';
  readonly failsFrom: number;
  readonly failsTo: number;
  /** Only attempts of the container below this number fail the probe. */
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

/** The CPU and memory of a container, used as requests and limits. */
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
  /** How many devices the container requests. */
  readonly devices?: number;
  /** The resources of the container; by default it requests none. */
  readonly size?: ContainerSize;
  /** The resource whose resize requires a container restart. */
  readonly restartsForSize?: 'cpu' | 'memory';
}

export interface PodSketch {
  readonly name: string;
  readonly revision: number;
  /** Where the pod is defined; by default in a manifest. */
  readonly source?: 'api';
  readonly restartPolicy: RestartPolicy;
  readonly graceSeconds: number;
  /** The priority of the pod; by default the pod has none. */
  readonly priority?: number | undefined;
  /** The active deadline of the pod; by default the pod has none. */
  readonly deadlineSeconds?: number | undefined;
  readonly init: readonly ContainerSketch[];
  readonly containers: readonly ContainerSketch[];
  /** Whether the node may reject the pod for lack of capacity. */
  readonly mayBeRefused?: true;
  /** Ephemeral containers, which are added while the pod runs. */
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

/** What the restart policy and rules require after a container has exited with this code. */
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
 * The effective restart policy of a container; a plain init container that has succeeded is not
 * restarted even under Always.
 */
export function policyOf(sketch: PodSketch, container: ContainerSketch): RestartPolicy {
  const policy = container.restartPolicy ?? sketch.restartPolicy;
  const isPlainInit = sketch.init.includes(container) && !isSidecar(container);
  return isPlainInit && policy === 'Always' ? 'OnFailure' : policy;
}
