import { type Clock, type Instant, KeyedMutex, type Logger } from '../lib/index.ts';
import { annotations, describePod, type Pod, type PodJournal, type PodSource } from '../pods/index.ts';
import {
  type KnownPods,
  type Merged,
  mergePods,
  type PodOperation,
  tellingOrder,
  withAnnotation,
  withoutRepeats,
} from './merge.ts';
import { UpdateQueue } from './update-queue.ts';

/** A change of the desired pods, one batch of one kind from one source. */
export interface PodUpdate {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
  readonly source: PodSource;
}

export interface PodConfigOptions {
  /** Those that are set up; nobody waits for any other. */
  readonly sources: readonly PodSource[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
}

/** Sources that are ahead of the sync loop wait when this many updates are not handled yet. */
const queueDepth = 50;

/**
 * Merges the complete lists (SET) the sources send into one ordered stream of changes. What it hands out is frozen:
 * whoever wants to change a pod copies it.
 */
export class PodConfig {
  readonly #options: PodConfigOptions;
  readonly #queue = new UpdateQueue<PodUpdate>(queueDepth);
  readonly #turns = new KeyedMutex<'merge'>();
  readonly #known = new Map<PodSource, KnownPods>();
  /** Sources the sync loop has handled at least one update of. */
  readonly #handled = new Set<PodSource>();

  constructor(options: PodConfigOptions) {
    this.#options = options;
  }

  /**
   * Takes the complete list of a source's pods. Resolves when all changes stand in the queue, so a source that awaits
   * it cannot run ahead. Lists of several sources are merged one after the other, each whole.
   */
  async set(source: PodSource, pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    await this.#turns.run(
      'merge',
      async () => {
        const updates = this.#merge(source, pods);
        for (const update of updates) await this.#queue.put(update, signal);
      },
      signal,
    );
  }

  async nextUpdate(signal: AbortSignal): Promise<PodUpdate> {
    return await this.#queue.take(signal);
  }

  /** The sync loop has finished handling an update of that source. */
  markHandled(source: PodSource): void {
    if (this.#handled.has(source)) return;
    this.#handled.add(source);
    this.#options.logger.info('A source of pods is ready', { source });
  }

  /** Whether the source has sent a list and an update of it was handled. Never goes back. */
  isReady(source: PodSource): boolean {
    return this.#known.has(source) && this.#handled.has(source);
  }

  allReady(): boolean {
    return this.#options.sources.every((source) => this.isReady(source));
  }

  /** Whether there is one that is ready, or none to wait for. */
  someReady(): boolean {
    const { sources } = this.#options;
    return sources.length === 0 || sources.some((source) => this.isReady(source));
  }

  /** The sources that are set up, each with its readiness. */
  readiness(): readonly { readonly source: PodSource; readonly ready: boolean }[] {
    return this.#options.sources.map((source) => ({ source, ready: this.isReady(source) }));
  }

  #merge(source: PodSource, pods: readonly Pod[]): readonly PodUpdate[] {
    const before = this.#known.get(source);
    const stamped = pods.map((pod) => deepFreeze(withAnnotation(pod, annotations.source, source)));
    const merged = mergePods(
      before ?? new Map(),
      this.#unique(source, stamped),
      timeSeen(this.#options.clock.now()),
    );
    this.#known.set(source, merged.known);
    return updatesOf(source, merged, before === undefined ? 'first' : 'later');
  }

  #unique(source: PodSource, pods: readonly Pod[]): readonly Pod[] {
    const { unique, repeated } = withoutRepeats(pods);
    for (const { pod, what } of repeated) {
      const value = what === 'name' ? pod.metadata.name : pod.metadata.uid;
      const message = `The pod ${describePod(pod)} from the source ${source} is left out: a pod before it in the same list has the ${what} ${value} too`;
      this.#options.logger.warn(message, { source });
      this.#options.journal.event(pod, { type: 'Warning', reason: 'FailedValidation', message });
    }
    return unique;
  }
}

/** A first list that adds nothing is told all the same: it is how the sync loop learns that the source is there. */
function updatesOf(source: PodSource, { changes }: Merged, set: 'first' | 'later'): readonly PodUpdate[] {
  const quiet = (['ADD', 'UPDATE', 'DELETE'] as const).every((op) => changes[op].length === 0);
  const announced = set === 'first' && quiet;
  return tellingOrder
    .filter((op) => changes[op].length > 0 || (op === 'ADD' && announced))
    .map((op) => ({ op, pods: changes[op].map(deepFreeze), source }));
}

/** As annotations have it: with nine digits behind the second, of which the clock knows three. */
function timeSeen(now: Instant): string {
  return new Date(now).toISOString().replace('Z', '000000Z');
}

/** What is frozen already is so to the bottom, as nothing else freezes. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
  return value;
}
