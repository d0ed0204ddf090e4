import type { Container } from '../../kinds/index.ts';
import { type Clock, describeError, type Logger } from '../../lib/index.ts';
import { containerFieldPath, describePod, type Pod, type PodJournal } from '../../pods/index.ts';
import type { PodKiller } from '../kill/pod-killer.ts';
import type { ActionFailure } from '../sync/sync-result.ts';
import type { HookCheckpoint, HookRunner } from './lifecycle-hooks.ts';

export interface PostStartDeps {
  readonly clock: Clock;
  readonly journal: PodJournal;
  readonly logger: Logger;
  readonly hooks: HookRunner;
  readonly hookCheckpoint: HookCheckpoint;
  readonly killer: Pick<PodKiller, 'killContainer'>;
}

export interface StartedContainer {
  readonly pod: Pod;
  readonly container: Container;
  readonly id: string;
}

/**
 * Runs postStart hooks: each is recorded before its container starts, and run until it has finished
 * once.
 */
export class PostStartHooks {
  readonly #deps: PostStartDeps;

  constructor(deps: PostStartDeps) {
    this.#deps = deps;
  }

  /**
   * Records the hook of a container before StartContainer, so that a later kubelet knows of the
   * pending hook.
   */
  async record({ pod, container, id }: StartedContainer): Promise<void> {
    if (container.lifecycle?.postStart !== undefined)
      await this.#deps.hookCheckpoint.recordPostStart(pod, id);
  }

  /**
   * Runs the postStart hook of the container, if it has one, and stops the container when the hook
   * fails. Returns the failure; undefined if there is none. Rejects only when the signal is
   * aborted; the hook then stays pending.
   */
  async run(started: StartedContainer, signal: AbortSignal): Promise<ActionFailure | undefined> {
    const { pod, container, id } = started;
    const { clock, hooks, hookCheckpoint } = this.#deps;
    const hook = container.lifecycle?.postStart;
    if (hook === undefined) return undefined;
    const startMs = clock.monotonicMs();
    try {
      await hooks.run(hook, { pod, container, containerId: id }, signal);
    } catch (error) {
      signal.throwIfAborted();
      await this.#stop(started, error, signal);
      return { reason: 'PostStartHookError', message: describeError(error) };
    }
    await hookCheckpoint.clearPostStart(pod, id);
    this.#deps.journal.step(pod.metadata.uid, {
      stage: 'container',
      outcome: 'done',
      message: `Ran the postStart hook of container ${container.name}`,
      container: container.name,
      ms: clock.monotonicMs() - startMs,
    });
    return undefined;
  }

  async #stop({ pod, container, id }: StartedContainer, error: unknown, signal: AbortSignal): Promise<void> {
    const { name } = container;
    const { logger, journal, killer, hookCheckpoint } = this.#deps;
    // The error is only logged, because it may contain secrets of the container.
    logger.error('PostStart hook failed', error, { pod: describePod(pod), container: name });
    const reason = 'FailedPostStartHook';
    const fieldPath = containerFieldPath(pod, name);
    journal.event(pod, { type: 'Warning', reason, message: 'PostStartHook failed', fieldPath });
    const { failure } = await killer.killContainer(pod, { id, name, reason, message: reason }, signal);
    // Clears the recorded hook only when the container was stopped, so that the container never
    // continues without its hook.
    if (failure === undefined) await hookCheckpoint.clearPostStart(pod, id);
  }
}
