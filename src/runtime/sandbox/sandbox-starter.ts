import { posix } from 'node:path';
import type { CriClient, PodSandbox, PodSandboxConfig, RunPodSandboxResponse } from '../../cri/index.ts';
import { type Clock, describeError, KubelingError, type Logger } from '../../lib/index.ts';
import { describePod, type ObservedSandbox, type Pod, type PodJournal } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import { labels } from '../containers/labels.ts';
import type { RuntimeFiles } from '../containers/runtime-files.ts';
import type { StartObserver } from '../metrics.ts';
import type { PodPlanner, SandboxPlan } from '../plan/pod-planner.ts';
import type { RuntimeObserver } from '../sync/runtime-observer.ts';
import type { ActionFailure } from '../sync/sync-result.ts';
import {
  isNameReserved,
  mayHaveTakenEffect,
  pollForResult,
  withFinishGrace,
} from '../sync/unknown-outcome.ts';
import type { SandboxLimit } from './sandbox-limiter.ts';

export interface SandboxStarterDeps {
  readonly cri: Pick<CriClient, 'runPodSandbox' | 'listPodSandbox'>;
  readonly observer: Pick<RuntimeObserver, 'sandbox'>;
  readonly clock: Clock;
  readonly files: RuntimeFiles;
  readonly journal: PodJournal;
  readonly logger: Logger;
  readonly planner: PodPlanner;
  readonly limit: SandboxLimit;
  readonly startObserver: Pick<StartObserver, 'runPodSandbox'>;
}

/** A sandbox in which containers can be created. */
export interface ReadySandbox {
  readonly id: string;
  readonly config: MessageInit<PodSandboxConfig>;
  readonly ips: readonly string[];
}

export type SandboxStart =
  | { readonly ok: true; readonly sandbox: ReadySandbox; readonly seen: ObservedSandbox }
  | { readonly ok: false; readonly failure: ActionFailure };

interface CreatedSandbox {
  readonly id: string;
  readonly config: MessageInit<PodSandboxConfig>;
}

const logDirectoryMode = 0o755;
/**
 * Maximum number of attempt numbers that a sync skips because the sandbox names with these numbers
 * are reserved.
 */
const maxNameConflicts = 2;

/**
 * Creates the sandbox of a pod. After a RunPodSandbox call with unknown outcome it adopts the
 * sandbox if it exists.
 */
export class SandboxStarter {
  readonly #deps: SandboxStarterDeps;

  constructor(deps: SandboxStarterDeps) {
    this.#deps = deps;
  }

  /**
   * Creates the sandbox and returns failures in the result; rejects only when the signal is
   * aborted.
   */
  async start(pod: Pod, attempt: number, signal: AbortSignal): Promise<SandboxStart> {
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    try {
      const made = await this.#create(pod, attempt, signal);
      const started = await this.#observe(pod, made, signal);
      const ms = clock.monotonicMs() - startMs;
      if (started.ok) this.#step(pod, 'done', readiness(pod, started.sandbox.ips), ms);
      return started;
    } catch (error) {
      signal.throwIfAborted();
      return this.#failed(pod, error);
    }
  }

  async #create(pod: Pod, firstAttempt: number, signal: AbortSignal): Promise<CreatedSandbox> {
    for (let attempt = firstAttempt; ; attempt++) {
      const { config, runtimeHandler } = await this.#deps.planner.sandboxPlan(pod, attempt, signal);
      const { dir: root, base: name } = posix.parse(config.logDirectory ?? '');
      await this.#deps.files.makeDirectoryBelow(root, name, logDirectoryMode);
      try {
        using _turn = await this.#acquireSlot(pod, signal);
        const { podSandboxId } = await this.#run({ config, runtimeHandler }, signal);
        return { id: podSandboxId, config };
      } catch (error) {
        signal.throwIfAborted();
        const found = mayHaveTakenEffect(error)
          ? await this.#findExisting(pod, attempt, error, signal)
          : undefined;
        if (found !== undefined) return { id: found.id, config };
        if (!isNameReserved(error) || attempt - firstAttempt >= maxNameConflicts) throw error;
      }
    }
  }

  async #acquireSlot(pod: Pod, signal: AbortSignal): Promise<Disposable> {
    const { limit, journal } = this.#deps;
    if (limit.isFull) {
      const message = 'queued while sandboxes of other pods are created';
      journal.step(pod.metadata.uid, { stage: 'sandbox', outcome: 'waiting', message, keep: 'last' });
    }
    return await limit.take(signal);
  }

  /**
   * A cancelled RunPodSandbox gets time to finish: otherwise the sandbox could appear after the pod
   * counted as stopped. Once it is listed, it is stopped with the pod.
   */
  async #run(plan: SandboxPlan, signal: AbortSignal): Promise<RunPodSandboxResponse> {
    signal.throwIfAborted();
    const { cri, clock, startObserver } = this.#deps;
    const startMs = clock.monotonicMs();
    const record = (outcome: 'created' | 'failed') =>
      startObserver.runPodSandbox(plan.runtimeHandler, clock.monotonicMs() - startMs, outcome);
    let response: RunPodSandboxResponse;
    try {
      response = await withFinishGrace(clock, (inner) => cri.runPodSandbox(plan, inner), signal);
      record('created');
    } catch (error) {
      record('failed');
      throw error;
    }
    signal.throwIfAborted();
    return response;
  }

  /** Finds the pod's ready sandbox with the given attempt number. */
  async #findExisting(
    pod: Pod,
    attempt: number,
    error: unknown,
    signal: AbortSignal,
  ): Promise<PodSandbox | undefined> {
    const { cri, clock, logger } = this.#deps;
    const filter = { labelSelector: { [labels.podUid]: pod.metadata.uid } };
    const look = async (inner: AbortSignal) => {
      const { items } = await cri.listPodSandbox({ filter }, inner);
      return items.find(({ state, metadata }) => state === 'SANDBOX_READY' && metadata?.attempt === attempt);
    };
    const found = await pollForResult(error, clock, look, signal).catch(() => undefined);
    signal.throwIfAborted();
    if (found !== undefined) {
      logger.info('Adopted sandbox after unanswered RunPodSandbox', {
        pod: describePod(pod),
        sandbox: found.id,
      });
    }
    return found;
  }

  async #observe(pod: Pod, { id, config }: CreatedSandbox, signal: AbortSignal): Promise<SandboxStart> {
    try {
      const seen = await this.#deps.observer.sandbox(id, signal);
      if (seen === undefined) throw new KubelingError('CRI_BAD_ANSWER', 'pod sandbox status is nil');
      return { ok: true, seen, sandbox: { id, config, ips: seen.network === 'pod' ? seen.ips : [] } };
    } catch (error) {
      signal.throwIfAborted();
      const message = `Unable to get pod sandbox status: ${describeError(error)}`;
      this.#deps.journal.event(pod, { type: 'Warning', reason: 'FailedPodSandBoxStatus', message });
      this.#step(pod, 'failed', message);
      return { ok: false, failure: { reason: 'PodSandboxStatusError', message } };
    }
  }

  #failed(pod: Pod, error: unknown): SandboxStart {
    const text = describeError(error);
    const event = `Failed to create pod sandbox: ${text}`;
    this.#deps.logger.error('Failed to create pod sandbox', error, { pod: describePod(pod) });
    this.#deps.journal.event(pod, { type: 'Warning', reason: 'FailedCreatePodSandBox', message: event });
    this.#step(pod, 'failed', event);
    const message = `Failed to create sandbox for pod "${describePod(pod)}": ${text}`;
    return { ok: false, failure: { reason: 'CreatePodSandboxError', message } };
  }

  #step(pod: Pod, outcome: 'done' | 'failed', message: string, ms?: number): void {
    this.#deps.journal.step(pod.metadata.uid, { stage: 'sandbox', outcome, message, ms });
  }
}

function readiness({ spec }: Pod, ips: readonly string[]): string {
  if (spec.hostNetwork === true) return "Sandbox is ready on the node's network";
  return ips.length === 0 ? 'Sandbox is ready' : `Sandbox is ready at ${ips.join(', ')}`;
}
