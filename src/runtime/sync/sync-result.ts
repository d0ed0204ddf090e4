import { type ErrorCode, KubelingError } from '../../lib/index.ts';
import { goQuote } from '../containers/go-format.ts';
import type { StartOutcome } from './reason-cache.ts';

export type SyncActionKind =
  | 'KillContainer'
  | 'KillPodSandbox'
  | 'RemoveContainer'
  | 'CreatePodSandbox'
  | 'ConfigPodSandbox'
  | 'StartContainer'
  | 'ResizePodInPlace';

/** One action of a pod sync and its failure, if it failed. */
export interface SyncAction {
  readonly action: SyncActionKind;
  /** Name of the container, id of the sandbox, or name of the pod. */
  readonly target: string;
  readonly failure?: ActionFailure;
}

export interface ActionFailure {
  /** A CamelCase reason; shown as the waiting reason of a container. */
  readonly reason: string;
  readonly message: string;
  /** Set for back-off failures: time of the next attempt, on the monotonic clock. */
  readonly retryAtMs?: number;
}

export interface KillResult {
  readonly actions: readonly SyncAction[];
  /** All failures as one error; undefined when all containers and sandboxes were stopped. */
  readonly error?: KubelingError;
}

export interface SyncPodResult {
  /** Actions of the sync in the order of execution. */
  readonly actions: readonly SyncAction[];
  /** All failures of the sync as one error; undefined when there were none. */
  readonly error?: KubelingError;
  /** Results of container starts, for the reason cache. */
  readonly starts: readonly StartOutcome[];
  /**
   * Ids of containers that were stopped or had exited during the sync; the previous observation may
   * list them as running.
   */
  readonly stopped: ReadonlySet<string>;
  /** Set when all failures are back-off: the earliest time of a retry, on the monotonic clock. */
  readonly earliestBackoffExpiryMs?: number;
}

/** Formats failures as one error like the Go kubelet, with the retry time if known. */
export function errorOf(code: ErrorCode, actions: readonly SyncAction[]): KubelingError | undefined {
  const texts = actions.flatMap(describeFailure);
  if (texts.length === 0) return undefined;
  const retryAtMs = earliestBackoffExpiryMs(actions);
  const message = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
  return new KubelingError(code, message, retryAtMs === undefined ? {} : { details: { retryAtMs } });
}

function describeFailure({ action, target, failure }: SyncAction): readonly string[] {
  if (failure === undefined) return [];
  const message = goQuote(failure.message);
  return [`failed to "${action}" for "${target}" with ${failure.reason}: ${message}`];
}

export function killResult(actions: readonly SyncAction[]): KillResult {
  const error = errorOf('POD_KILL', actions);
  return error === undefined ? { actions } : { actions, error };
}

/** The earliest retry time when all failures are back-off; otherwise undefined. */
export function earliestBackoffExpiryMs(actions: readonly SyncAction[]): number | undefined {
  const failures = actions.flatMap(({ failure }) => failure ?? []);
  const times = failures.flatMap(({ retryAtMs }) => retryAtMs ?? []);
  return times.length === 0 || times.length < failures.length ? undefined : Math.min(...times);
}
