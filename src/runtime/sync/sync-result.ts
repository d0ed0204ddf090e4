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

/** One thing that was tried, and why it failed if it did. */
export interface SyncAction {
  readonly action: SyncActionKind;
  /** The container's name, the sandbox's id or the pod. */
  readonly target: string;
  readonly failure?: ActionFailure;
}

export interface ActionFailure {
  /** One word, part of the API where it is a container's waiting reason. */
  readonly reason: string;
  readonly message: string;
  /** Set when it failed only because it is too early: when it may be tried, on the monotonic clock. */
  readonly retryAtMs?: number;
}

export interface KillResult {
  readonly actions: readonly SyncAction[];
  /** All failures in one; undefined when everything is stopped. */
  readonly error?: KubelingError;
}

export interface SyncPodResult {
  /** In the order they were done. */
  readonly actions: readonly SyncAction[];
  /** All failures in one; undefined when all went well. */
  readonly error?: KubelingError;
  /** What became of each container that was to be started: feeds the reason cache. */
  readonly starts: readonly StartOutcome[];
  /** Containers that were stopped, or had stopped, by id: what was observed before may still have them running. */
  readonly stopped: ReadonlySet<string>;
  /** Set when back-off is all that stands in the way: nothing can be gained before, on the monotonic clock. */
  readonly earliestBackoffExpiryMs?: number;
}

/** Sums up failures as one error, in the words users of a kubelet know, with the time to try again if it is known. */
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

/** When to try again, if waiting is all that is needed. */
export function earliestBackoffExpiryMs(actions: readonly SyncAction[]): number | undefined {
  const failures = actions.flatMap(({ failure }) => failure ?? []);
  const times = failures.flatMap(({ retryAtMs }) => retryAtMs ?? []);
  return times.length === 0 || times.length < failures.length ? undefined : Math.min(...times);
}
